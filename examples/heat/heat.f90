! Heat in 2D on a periodic grid: mpiexec -n 4 ./heat_f
program heat
  use mpi_f08
  use haloscope
  implicit none
  type(halo_grid) :: grid
  type(halo_exchange) :: halo
  real(8), allocatable, target :: u(:, :)
  real(8), allocatable :: old(:, :)
  real(8) :: hottest
  integer :: n(2), first(2), step, i, j

  call MPI_Init()
  call grid%create(MPI_COMM_WORLD%mpi_val, [64, 96], periodic=[.true., .true.])
  n = grid%shape()
  first = grid%first()
  allocate (u(0:n(1) + 1, 0:n(2) + 1), source=0d0)
  call halo%add(u, halo=1)
  call halo%open(grid, corners=.false.)

  do j = 1, n(2)
    do i = 1, n(1)
      if (abs(first(1) + i - 2 - 32) < 8 .and. abs(first(2) + j - 2 - 48) < 8) u(i, j) = 1
    end do
  end do
  do step = 1, 100
    call halo%run()
    old = u
    do j = 1, n(2)
      do i = 1, n(1)
        u(i, j) = at(i, j) + 0.2d0*((at(i, j - 1) + at(i, j + 1)) + (at(i - 1, j) + at(i + 1, j)) - 4*at(i, j))
      end do
    end do
  end do
  hottest = maxval(u(1:n(1), 1:n(2)))
  call MPI_Allreduce(MPI_IN_PLACE, hottest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
  if (all(first == 1)) print '(a, f17.15)', 'after 100 steps the hottest cell has ', hottest
  call halo%free()
  call MPI_Finalize()

contains

  !> Returns the value before this step.
  pure real(8) function at(i, j)
    integer, intent(in) :: i, j
    at = old(i, j)
  end function
end program
