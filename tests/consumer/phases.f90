! The program of phases.cpp in Fortran: seven exchanges a step of other arrays and depths, by one exchange.
program phases
  use, intrinsic :: iso_c_binding
  use haloscope
  implicit none

  interface
    include 'mpi_for_fortran.inc'
  end interface

  type :: array
    real(8), allocatable :: u(:, :)
    integer :: n(2) = 0
  end type
  integer, parameter :: fields = 15, steps = 10, room = 2, cells(2) = [30, 22]
  integer :: f, step
  integer, parameter :: centrings(fields) = [[(halo_cell, f=1, 7)], [(halo_node, f=8, 11)], &
                                             halo_face_1, halo_face_1, halo_face_2, halo_face_2]
  type(array), target :: arrays(fields)
  type(halo_grid) :: grid
  type(halo_exchange) :: halo
  character(64) :: strategy = 'auto'

  call begin_mpi()
  if (command_argument_count() > 0) call get_command_argument(1, strategy)
  call grid%create(world(), cells, periodic=[.true., .true.])
  do f = 1, fields
    call fill(arrays(f), f)
    call halo%add(arrays(f)%u, halo=room)  ! the extents determine the centring
  end do
  call halo%open(grid, strategy=trim(strategy))
  do step = 1, steps
    call phase([1, 3, 5, 8, 10], 1)
    call phase([6], 1)
    call phase([5], 1)
    call phase([1, 2, 3, 4, 12, 14], 2)
    call phase([2, 4, 9, 11, 13, 15], 2)
    call phase([1, 3, 5, 6, 7], 2)
    call phase([9, 11], 1)
  end do
  call print_checksum()
  call halo%free()
  call grid%free()
  call end_mpi()

contains

  subroutine fill(one, field)
    type(array), intent(inout) :: one
    integer, intent(in) :: field
    integer(8) :: at(2)
    integer :: first(2), i, j
    first = grid%first() - 1
    one%n = grid%shape()
    if (centrings(field) == halo_node .or. centrings(field) == halo_face_1) one%n(1) = one%n(1) + 1
    if (centrings(field) == halo_node .or. centrings(field) == halo_face_2) one%n(2) = one%n(2) + 1
    allocate (one%u(1 - room:one%n(1) + room, 1 - room:one%n(2) + room), source=0._8)
    do j = 1, one%n(2)
      do i = 1, one%n(1)
        at = modulo(first + [i, j] - 1, cells)
        one%u(i, j) = real(modulo(at(1)*7919 + at(2)*104729 + (field - 1)*1299709_8, 1000003_8), 8)/1000003
      end do
    end do
  end subroutine

  !> Exchanges some fields, then sets their points to averages of themselves and of the points `d` away.
  subroutine phase(only, d)
    integer, intent(in) :: only(:), d
    real(8) :: old(1 - room:cells(1) + 1 + room, 1 - room:cells(2) + 1 + room)
    integer :: k, i, j
    call halo%run(only=only, depth=d)
    do k = 1, size(only)
      associate (u => arrays(only(k))%u, n => arrays(only(k))%n)
        old(:n(1) + room, :n(2) + room) = u
        do j = 1, n(2)
          do i = 1, n(1)
            u(i, j) = 0.5d0*old(i, j) + 0.125d0*((old(i - d, j) + old(i + d, j)) + (old(i, j - d) + old(i, j + d)))
          end do
        end do
      end associate
    end do
  end subroutine

  !> The same on any number of ranks.
  subroutine print_checksum()
    integer(8) :: mine
    integer :: first(2), n(2), f, i, j
    first = grid%first() - 1
    n = grid%shape()
    mine = 0
    do f = 1, fields
      do j = 1, n(2)
        do i = 1, n(1)
          mine = mine + transfer(arrays(f)%u(i, j), mine)*(2_8*((first(2) + j - 1)*cells(1) + first(1) + i - 1) + 1)
        end do
      end do
    end do
    call print_sum(mine)
  end subroutine
end program phases
