! The program of waves.cpp in Fortran: dimensions and layers that are known at run time.
program waves
  use, intrinsic :: iso_c_binding
  use haloscope
  implicit none

  interface
    include 'mpi_for_fortran.inc'
  end interface

  integer, parameter :: steps = 4, all_cells(3) = [18, 16, 20], of_layers(4) = [1, 2, 5, 8]
  logical, parameter :: wraps(3) = [.true., .false., .true.]
  character(64) :: strategy = 'auto'
  integer :: dims, c

  call begin_mpi()
  if (command_argument_count() > 0) call get_command_argument(1, strategy)
  do dims = 1, 3
    do c = 1, 4
      call advance(of_layers(c))
    end do
  end do
  call end_mpi()

contains

  !> All arrays have three dimensions; further ones have one cell and no ghost layer.
  subroutine advance(layers)
    integer, intent(in) :: layers
    real(8), allocatable, target :: u(:, :, :), v(:, :, :)
    type(halo_grid) :: grid
    type(halo_exchange) :: halo
    integer :: cells(3), w(3), n(3), first(3), i, j, k, t
    cells = merge(all_cells, 1, [1, 2, 3] <= dims)
    w = merge(layers, 0, [1, 2, 3] <= dims)
    call grid%create(world(), cells, periodic=wraps .and. [1, 2, 3] <= dims)
    n = grid%shape()
    first = grid%first() - 1
    allocate (u(1 - w(1):n(1) + w(1), 1 - w(2):n(2) + w(2), 1 - w(3):n(3) + w(3)), source=0._8)
    do k = 1, n(3)
      do j = 1, n(2)
        do i = 1, n(1)
          u(i, j, k) = initial(first + [i, j, k] - 1)
        end do
      end do
    end do
    allocate (v, source=u)
    call halo%add(u, low=w, high=w)
    call halo%add_slot(v)
    call halo%open(grid, strategy=trim(strategy), corners=.false.)
    do t = 1, steps, 2
      call halo%run(slot=1)
      call step(u, v, w, n, layers)
      call halo%run(slot=2)
      call step(v, u, w, n, layers)
    end do
    call print_checksum(u, w, n, first, cells)
    call halo%free()
    call grid%free()
  end subroutine

  pure real(8) function initial(at)
    integer, intent(in) :: at(3)
    initial = real(modulo(at(1)*7919_8 + at(2)*104729_8 + at(3)*15485863_8, 1000003_8), 8)/1000003
  end function

  subroutine step(u, v, w, n, layers)
    integer, intent(in) :: w(3), n(3), layers
    real(8), intent(in) :: u(1 - w(1):, 1 - w(2):, 1 - w(3):)
    real(8), intent(inout) :: v(1 - w(1):, 1 - w(2):, 1 - w(3):)
    real(8) :: total, pairs
    integer :: i, j, k, m
    do k = 1, n(3)
      do j = 1, n(2)
        do i = 1, n(1)
          total = 0.5d0*v(i, j, k)
          do m = 1, layers
            pairs = u(i - m, j, k) + u(i + m, j, k)
            if (w(2) > 0) pairs = pairs + (u(i, j - m, k) + u(i, j + m, k))
            if (w(3) > 0) pairs = pairs + (u(i, j, k - m) + u(i, j, k + m))
            total = total + 0.125d0/(m*m)*pairs
          end do
          v(i, j, k) = total
        end do
      end do
    end do
  end subroutine

  !> The same on any number of ranks.
  subroutine print_checksum(u, w, n, first, cells)
    integer, intent(in) :: w(3), n(3), first(3), cells(3)
    real(8), intent(in) :: u(1 - w(1):, 1 - w(2):, 1 - w(3):)
    integer(8) :: mine, cell
    integer :: i, j, k
    mine = 0
    do k = 1, n(3)
      do j = 1, n(2)
        do i = 1, n(1)
          cell = ((first(3) + k - 1_8)*cells(2) + first(2) + j - 1)*cells(1) + first(1) + i - 1
          mine = mine + transfer(u(i, j, k), mine)*(2*cell + 1)
        end do
      end do
    end do
    call print_sum(mine)
  end subroutine
end program waves
