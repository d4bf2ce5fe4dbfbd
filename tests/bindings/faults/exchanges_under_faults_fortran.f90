! The same through the Fortran module: while calls of MPI fail, each rank prints the reports, then "right", "wrong" or
!   "refused: TEXT". usage: exchanges_under_faults_fortran STRATEGY
program exchanges_under_faults
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: output_unit
  use haloscope
  implicit none

  interface
    include '../../consumer/mpi_for_fortran.inc'
    subroutine leave(code) bind(c, name='_Exit')
      import :: c_int
      integer(c_int), value :: code
    end subroutine
  end interface

  integer, parameter :: cells(2) = [10, 12]
  character(100) :: strategy
  character(1000) :: text
  integer :: stat
  logical :: right = .true.

  call get_command_argument(1, strategy)
  call begin_mpi()
  call exchange_all()
  if (stat /= 0) then
    print '(a, i0, 2a)', 'rank ', own_rank(), ': refused: ', trim(text)
  else
    print '(a, i0, 2a)', 'rank ', own_rank(), ': ', trim(merge('right', 'wrong', right))
  end if
  flush (output_unit)
  call meet()
  if (stat /= 0 .or. .not. right) call leave(1_c_int)  ! after a failed call MPI_Finalize may wait indefinitely
  call end_mpi()

contains

  subroutine exchange_all()
    type(halo_grid) :: grid
    type(halo_exchange) :: halo
    real(8), allocatable, target :: u(:, :), other(:, :)
    integer :: first(2), n(2), turn, step, i, j
    call grid%create(world(), cells, periodic=[.true., .true.], stat=stat, errmsg=text)
    if (stat /= 0) return
    first = grid%first()
    n = grid%shape()
    allocate (u(0:n(1) + 1, 0:n(2) + 1), other(0:n(1) + 1, 0:n(2) + 1))
    do turn = 1, 2
      call halo%add(u, halo=1)
      call halo%open(grid, strategy=trim(strategy), stat=stat, errmsg=text)
      if (stat /= 0) return
      do step = 1, 3
        do j = 1, n(2)
          do i = 1, n(1)
            u(i, j) = number(first, i, j)
          end do
        end do
        call halo%run(stat=stat, errmsg=text)
        if (stat /= 0) return
        do j = 0, n(2) + 1
          do i = 0, n(1) + 1
            right = right .and. nint(u(i, j)) == number(first, i, j)
          end do
        end do
      end do
      call halo%accumulate(stat=stat, errmsg=text)
      if (stat /= 0) return
      print '(2a)', 'report: ', halo%report()
      call halo%rebind(other, stat=stat, errmsg=text)
      if (stat /= 0) then
        print '(a, i0, 2a)', 'rank ', own_rank(), ': refused: ', trim(text)
        call halo%rebind(other, stat=stat)
      end if
      if (stat /= 0) then  ! a second try must succeed
        right = .false.
        stat = 0
        return
      end if
      call halo%free()
    end do
    call grid%free()
  end subroutine

  !> The global number of the cell at local (i, j), from 1, periodic.
  pure integer function number(first, i, j)
    integer, intent(in) :: first(2), i, j
    number = modulo(first(1) - 1 + i - 1, cells(1)) + 100*modulo(first(2) - 1 + j - 1, cells(2))
  end function
end program
