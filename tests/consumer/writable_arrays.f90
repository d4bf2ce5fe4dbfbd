! Arrays that a compiler lets a program pass to the module, whose exchanges write to them later. The source compiles as
! it stands. Each line after `!-` passes an array that is not writable, or does not exist after the call: with it the
! source must not compile. TAKE represents add, add_slot and rebind.
module writable_arrays
  use haloscope
  implicit none

  type :: point
    real(8) :: x, y
  end type

  real(8), parameter :: constant(3, 3) = 0
  real(8), protected, target :: own(3, 3)

contains

  function result_of(n) result(made)
    integer, intent(in) :: n
    real(8) :: made(n, n)
    made = 0
  end function

  subroutine pass_what_can_be_written_to(halo, u, moved, to, points)
    type(halo_exchange), intent(inout) :: halo
    real(8), intent(inout), target :: u(:, :)
    real(8), allocatable, intent(inout), target :: moved(:, :)
    real(8), pointer, intent(in) :: to(:, :)
    type(point), intent(inout), target :: points(:, :)
    real(8), target :: plain(3, 3)
    call halo%TAKE(u)
    call halo%TAKE(u(1::2, :))
    call halo%TAKE(u(size(u, 1):1:-1, 2:3))
    call halo%TAKE(moved)
    call halo%TAKE(moved(:, 1::2))
    call halo%TAKE(to)
    call halo%TAKE(to(2:, :))
    call halo%TAKE(points)
    call halo%TAKE(points%y)
    call halo%TAKE(plain)
    call halo%TAKE(own)
    associate (inner => u(2:3, 2:3))
      call halo%TAKE(inner)
    end associate
  end subroutine

  subroutine pass_what_cannot(halo, u, given, number)
    type(halo_exchange), intent(inout) :: halo
    real(8), intent(inout), target :: u(:, :)
    real(8), intent(in), target :: given(:, :)
    integer, intent(in) :: number(:)
    call halo%TAKE(u)
    !- call halo%TAKE((u))
    !- call halo%TAKE(2*u)
    !- call halo%TAKE(u + given)
    !- call halo%TAKE([1d0, 2d0, 3d0])
    !- call halo%TAKE(reshape(u, [3, 3]))
    !- call halo%TAKE(transpose(u))
    !- call halo%TAKE(result_of(3))
    !- call halo%TAKE(constant)
    !- call halo%TAKE(constant(1:2, :))
    !- call halo%TAKE(1d0)
    !- call halo%TAKE(given)
    !- call halo%TAKE(given(1::2, :))
    !- call halo%TAKE(u([1, 3], :))
    !- call halo%TAKE(u(:, number))
    if (size(given) > size(number)) return
  end subroutine
end module
