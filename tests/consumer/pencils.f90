! The program of pencils.cpp in Fortran: sides and dimensions by call, with ghost rows that the code has computed.
program pencils
  use, intrinsic :: iso_c_binding
  use haloscope
  implicit none

  interface
    include 'mpi_for_fortran.inc'
  end interface

  integer, parameter :: steps = 10, cells(3) = [12, 10, 8], nx = cells(1)
  real(8), allocatable, target :: a(:, :, :, :)  ! u, v, w, p
  type(halo_grid) :: grid
  type(halo_exchange) :: halo
  character(64) :: strategy = 'auto', process_grid
  integer :: first(3), n(3), rows, f, i, j, k

  call begin_mpi()
  if (command_argument_count() > 0) call get_command_argument(1, strategy)
  rows = merge(2, 1, modulo(rank_count(), 2) == 0)
  write (process_grid, '(2(a, i0))') '1x', rank_count()/rows, 'x', rows
  call grid%create(world(), cells, periodic=[.true., .true., .false.], process_grid=trim(process_grid))
  first = grid%first() - 1
  n = grid%shape()
  allocate (a(0:nx + 1, 0:n(2) + 1, 0:n(3) + 1, 4), source=0._8)
  do f = 1, 4
    do k = 1, n(3)
      do j = 1, n(2)
        do i = 1, nx
          a(i, j, k, f) = initial(first + [i, j, k] - 1, f)
        end do
      end do
    end do
    call halo%add(a(:, :, :, f), halo=1)
  end do
  call halo%open(grid, strategy=trim(strategy))
  do i = 1, steps
    call step(a(:, :, :, 1), a(:, :, :, 2), a(:, :, :, 3), a(:, :, :, 4))
  end do
  call print_checksum()
  call halo%free()
  call grid%free()
  call end_mpi()

contains

  pure real(8) function initial(at, field)
    integer, intent(in) :: at(3), field
    integer(8) :: number
    number = at(1)*7919_8 + at(2)*104729_8 + at(3)*15485863_8 + (field - 1)*1299709_8
    initial = real(modulo(number, 1000003_8), 8)/1000003
  end function

  !> Fills one side of the halos of some arrays in each dimension.
  subroutine fill(only, low, high)
    integer, intent(in) :: only(:), low, high
    integer :: m
    do m = 1, size(only)
      a(0, :, :, only(m)) = a(nx, :, :, only(m))
      a(nx + 1, :, :, only(m)) = a(1, :, :, only(m))
    end do
    call halo%run(only=only, low=[0, low, 0], high=[0, high, 0], ghost_rows=.true.)
    do m = 1, size(only)
      if (first(3) == 0) a(:, :, 0, only(m)) = a(:, :, 1, only(m))
      if (first(3) + n(3) == cells(3)) a(:, :, n(3) + 1, only(m)) = a(:, :, n(3), only(m))
    end do
    call halo%run(only=only, low=[0, 0, low], high=[0, 0, high], ghost_rows=.true.)
  end subroutine

  subroutine step(u, v, w, p)
    real(8), intent(inout), target, dimension(0:, 0:, 0:) :: u, v, w, p
    integer :: i, j, k
    call fill([1, 2, 3], 1, 0)
    do k = 1, n(3)
      do j = 1, n(2)
        do i = 1, nx
          p(i, j, k) = 0.5d0*p(i, j, k) + 0.125d0*((u(i - 1, j - 1, k) + v(i - 1, j - 1, k - 1)) &
                                                 + (w(i, j - 1, k - 1) + u(i - 1, j, k - 1)))
        end do
      end do
    end do
    call fill([4], 0, 1)
    do k = 1, n(3)
      do j = 1, n(2)
        do i = 1, nx
          u(i, j, k) = 0.5d0*u(i, j, k) + 0.25d0*(p(i + 1, j + 1, k + 1) + p(i + 1, j + 1, k))
          v(i, j, k) = 0.5d0*v(i, j, k) + 0.25d0*(p(i + 1, j, k + 1) + p(i + 1, j + 1, k + 1))
          w(i, j, k) = 0.5d0*w(i, j, k) + 0.25d0*(p(i, j + 1, k + 1) + p(i, j, k + 1))
        end do
      end do
    end do
  end subroutine

  !> The same on any number of ranks.
  subroutine print_checksum()
    integer(8) :: mine, cell
    integer :: f, i, j, k
    mine = 0
    do f = 1, 4
      do k = 1, n(3)
        do j = 1, n(2)
          do i = 1, nx
            cell = ((first(3) + k - 1_8)*cells(2) + first(2) + j - 1)*nx + i - 1
            mine = mine + transfer(a(i, j, k, f), mine)*(2*cell + 1)
          end do
        end do
      end do
    end do
    call print_sum(mine)
  end subroutine
end program pencils
