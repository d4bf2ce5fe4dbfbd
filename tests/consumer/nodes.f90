! The program of nodes.cpp in Fortran: forces of cells added up at nodes, positions shared from the owners of nodes.
program nodes
  use, intrinsic :: iso_c_binding
  use haloscope
  implicit none

  interface
    include 'mpi_for_fortran.inc'
  end interface

  integer, parameter :: steps = 10, cells(2) = [20, 14]
  real(8), parameter :: unit = 2d0**(-20)
  real(8), allocatable, target :: p(:, :), force(:, :)
  type(halo_grid) :: grid
  type(halo_exchange) :: halo
  character(64) :: strategy = 'auto'
  integer :: first(2), n(2), at(2), step, i, j

  call begin_mpi()
  if (command_argument_count() > 0) call get_command_argument(1, strategy)
  call grid%create(world(), cells, periodic=[.true., .true.])
  first = grid%first() - 1
  n = grid%shape()
  allocate (p(n(1) + 1, n(2) + 1), force(n(1) + 1, n(2) + 1))
  do j = 1, n(2) + 1
    do i = 1, n(1) + 1
      at = modulo(first + [i, j] - 1, cells)
      p(i, j) = real(modulo(at(1)*7919_8 + at(2)*104729_8, 1000003_8), 8)/1000003
    end do
  end do
  call halo%add(p, halo=0, centring=halo_node)
  call halo%add(force, halo=0, centring=halo_node)
  call halo%open(grid, strategy=trim(strategy))
  do step = 1, steps
    call move_nodes()
  end do
  call print_checksum()
  call halo%free()
  call grid%free()
  call end_mpi()

contains

  subroutine move_nodes()
    real(8) :: of_cell
    integer :: i, j
    force = 0
    do j = 1, n(2)
      do i = 1, n(1)
        of_cell = real(floor(0.25d0*((p(i, j) + p(i + 1, j)) + (p(i, j + 1) + p(i + 1, j + 1)))/unit), 8)*unit
        force(i:i + 1, j:j + 1) = force(i:i + 1, j:j + 1) + of_cell
      end do
    end do
    call halo%accumulate(only=[2])
    p(:n(1), :n(2)) = 0.5d0*p(:n(1), :n(2)) + 0.125d0*force(:n(1), :n(2))
    call halo%share(only=[1])
  end subroutine

  !> The same on any number of ranks.
  subroutine print_checksum()
    integer(8) :: mine
    integer :: i, j
    mine = 0
    do j = 1, n(2)
      do i = 1, n(1)
        mine = mine + transfer(p(i, j), mine)*(2_8*((first(2) + j - 1)*cells(1) + first(1) + i - 1) + 1)
      end do
    end do
    call print_sum(mine)
  end subroutine
end program nodes
