! The program of tiles.cpp in Fortran: several tiles a rank, of sizes and numbers that are known at run time.
program tiles
  use, intrinsic :: iso_c_binding
  use haloscope
  implicit none

  interface
    include 'mpi_for_fortran.inc'
  end interface

  type :: tile
    integer :: n(2) = 0, first(2) = 1  ! cells, and the first one
    real(8), pointer :: u(:, :), f(:, :)
  end type

  integer, parameter :: steps = 4, cells(2) = [37, 26]
  character(64) :: strategy = 'auto'

  call begin_mpi()
  if (command_argument_count() > 0) call get_command_argument(1, strategy)
  call advance_tiles([10, 9])
  call advance_tiles([37, 26])
  call advance_tiles([40, 5])
  call end_mpi()

contains

  !> @param shape  cells of a tile.
  subroutine advance_tiles(shape)
    integer, intent(in) :: shape(2)
    type(tile), target :: own(64)
    type(halo_grid) :: grid
    type(halo_exchange) :: halo
    integer :: low(2, 64), high(2, 64), count, n, t
    call find_tiles(shape, own, count)
    do n = 1, max(1, count)
      low(:, n) = own(n)%first
      high(:, n) = own(n)%first + own(n)%n - 1
      allocate (own(n)%u(-1:own(n)%n(1) + 2, -1:own(n)%n(2) + 2), source=0._8)
      allocate (own(n)%f(0:own(n)%n(1) + 2, 0:own(n)%n(2) + 1), source=0._8)
      call set_initial(own(n))
      call halo%add(own(n)%u, halo=2)
      call halo%add(own(n)%f, halo=1, centring=halo_face_1)
    end do
    call grid%create_of_blocks(world(), cells, low(:, :count), high(:, :count), periodic=[.true., .false.])
    call halo%open(grid, strategy=trim(strategy))
    do t = 1, steps
      call halo%run(only=[1])
      do n = 1, count
        call find_fluxes(own(n)%n, own(n)%u, own(n)%f)
      end do
      call halo%run(only=[2])
      do n = 1, count
        call advance(own(n)%n, own(n)%u, own(n)%f)
      end do
    end do
    call print_checksum(own(:count), grid%norm_field(halo, 1))
    call halo%free()
    call grid%free()
    do n = 1, max(1, count)
      deallocate (own(n)%u, own(n)%f)
    end do
  end subroutine

  subroutine find_tiles(shape, own, count)
    integer, intent(in) :: shape(2)
    type(tile), intent(inout) :: own(:)
    integer, intent(out) :: count
    integer :: x, y, n
    n = 0
    count = 0
    do y = 1, cells(2), shape(2)
      do x = 1, cells(1), shape(1)
        if (modulo(5*n + n/4, rank_count()) == own_rank()) then
          count = count + 1
          own(count)%first = [x, y]
          own(count)%n = min(shape, cells - [x, y] + 1)
        end if
        n = n + 1
      end do
    end do
  end subroutine

  subroutine set_initial(one)
    type(tile), intent(inout) :: one
    integer :: i, j
    do j = 1, one%n(2)
      do i = 1, one%n(1)
        one%u(i, j) = real(modulo((one%first(1) + i - 2)*7919_8 + (one%first(2) + j - 2)*104729_8, 1000003_8), 8)/1000003
      end do
    end do
  end subroutine

  !> Face i lies before cell i.
  subroutine find_fluxes(n, u, f)
    integer, intent(in) :: n(2)
    real(8), intent(in) :: u(-1:, -1:)
    real(8), intent(inout) :: f(0:, 0:)
    integer :: i, j
    do j = 1, n(2)
      do i = 1, n(1) + 1
        f(i, j) = (u(i - 1, j) - u(i, j)) + 0.25d0*(u(i - 2, j) - u(i + 1, j))
      end do
    end do
  end subroutine

  subroutine advance(n, u, f)
    integer, intent(in) :: n(2)
    real(8), intent(inout) :: u(-1:, -1:)
    real(8), intent(in) :: f(0:, 0:)
    integer :: i, j
    do j = 1, n(2)
      do i = 1, n(1)
        u(i, j) = u(i, j) + (0.1d0*(f(i, j) - f(i + 1, j)) + 0.05d0*(f(i - 1, j - 1) - f(i + 2, j + 1)))
      end do
    end do
  end subroutine

  !> The same on any number of ranks.
  subroutine print_checksum(own, norm)
    type(tile), intent(in) :: own(:)
    real(8), intent(in) :: norm
    integer(8) :: mine, cell
    integer :: i, j, n
    mine = 0
    if (own_rank() == 0) mine = transfer(norm, mine)
    do n = 1, size(own)
      do j = 1, own(n)%n(2)
        do i = 1, own(n)%n(1)
          cell = (own(n)%first(2) + j - 2_8)*cells(1) + own(n)%first(1) + i - 2
          mine = mine + transfer(own(n)%u(i, j), mine)*(2*cell + 1)
        end do
      end do
    end do
    call print_sum(mine)
  end subroutine
end program tiles
