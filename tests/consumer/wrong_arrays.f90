! Arrays that cannot be exchanged, take turns with another one or replace it: they are refused by name, on all ranks
! where one has them.
program wrong_arrays
  use, intrinsic :: iso_c_binding
  use haloscope
  implicit none

  interface
    include 'mpi_for_fortran.inc'
  end interface

  type :: four_bytes
    integer(2) :: a, b
  end type
  type :: eight_bytes
    real(4) :: a, b
  end type

  type, extends(eight_bytes) :: twelve_bytes
    real(4) :: c
  end type

  character(*), parameter :: types_of_4(5) = &
    [character(12) :: 'integer', 'real', 'logical', 'character', 'derived type']
  character(*), parameter :: types_of_8(6) = [character(12) :: types_of_4, 'complex']
  character(*), parameter :: every_rank = 'direct/neighbor'  ! whose ranks store the addresses of the neighbours' arrays
  integer, parameter :: add = 1, add_slot = 2, rebind = 3
  type(halo_grid) :: grid
  type(halo_exchange) :: halo
  integer :: what, stat, wrong = 0, sizes(1) = 0
  character(300) :: text

  call begin_mpi()
  call grid%create(world(), [12, 10], periodic=[.true., .true.])
  call refuse_other_types(types_of_4, 4)
  call refuse_other_types(types_of_8, 8)
  call refuse_arrays_without_memory()
  call refuse_arrays_without_points()
  call refuse_arrays_of_assumed_size(sizes)
  call forget_what_was_not_opened()
  call grid%free()
  call refuse_copies([12, 10])
  call refuse_copies([90, 70])
  call refuse_copies([900, 800])  ! more than allocators cache
  if (wrong == 0) print '(a, i0, a)', 'rank ', own_rank(), ': right'
  call end_mpi()

contains

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    print '(a, i0, 2a)', 'rank ', own_rank(), ': wrong: ', what
    wrong = wrong + 1
  end subroutine

  !> Each pair of types with equally many bytes, in slots and for memory that moves. Rank 0 alone has the other type.
  subroutine refuse_other_types(types, bytes)
    character(*), intent(in) :: types(:)
    integer, intent(in) :: bytes
    integer :: first, other
    do first = 1, size(types)
      do other = 1, size(types)
        if (own_rank() /= 0) then
          call exchange_types(types(first), types(first), bytes)
        else
          call exchange_types(types(first), types(other), bytes)
        end if
        if (other == first) call expect(stat == 0, trim(types(first))//' is like itself: '//trim(text))
        if (other /= first) call expect_both_types(types(first), types(other), bytes)
      end do
    end do
  end subroutine

  !> add_slot() and rebind() with the other type. `stat` and `text` are of the first failure.
  subroutine exchange_types(type, other, bytes)
    character(*), intent(in) :: type, other
    integer, intent(in) :: bytes
    integer :: stat_of_slots
    character(len(text)) :: text_of_slots
    text = ''
    call pass(type, bytes, add)
    call pass(other, bytes, add_slot)
    call halo%open(grid, strategy=every_rank, stat=stat, errmsg=text)
    stat_of_slots = stat
    text_of_slots = text
    call pass(type, bytes, add)
    call halo%open(grid, strategy=every_rank)
    call pass(other, bytes, rebind)
    call expect(stat == stat_of_slots .and. text == text_of_slots, 'rebind() refuses as add_slot(): '//trim(text))
    call halo%free()
  end subroutine

  subroutine expect_both_types(type, other, bytes)
    character(*), intent(in) :: type, other
    integer, intent(in) :: bytes
    character(120) :: names
    write (names, '(3a, i0, 3a, i0, a)') 'of type ', trim(other), ' of ', bytes, ' bytes takes turns with one of '// &
      'type ', trim(type), ' of ', bytes, ' bytes'
    call expect(stat == 2 .and. index(text, trim(names)) > 0, trim(text)//' should have: '//trim(names))
    call expect(own_rank() == 0 .or. index(text, 'rank 0: ') == 1, trim(text))
  end subroutine

  !> An array of a type, in separate memory that stays until the program ends.
  subroutine pass(type, bytes, how)
    character(*), intent(in) :: type
    integer, intent(in) :: bytes, how
    integer :: n(2)
    what = how
    n = grid%shape() + 2
    if (bytes == 4) call pass_4_bytes(type, n)
    if (bytes == 8) call pass_8_bytes(type, n)
  end subroutine

  subroutine pass_4_bytes(type, n)
    character(*), intent(in) :: type
    integer, intent(in) :: n(2)
    integer(4), pointer :: numbers(:, :)
    real(4), pointer :: reals(:, :)
    logical(4), pointer :: flags(:, :)
    character(4), pointer :: words(:, :)
    type(four_bytes), pointer :: points(:, :)
    type(c_ptr) :: memory
    memory = new_memory(4*product(n))
    call c_f_pointer(memory, numbers, n)
    call c_f_pointer(memory, reals, n)
    call c_f_pointer(memory, flags, n)
    call c_f_pointer(memory, points, n)
    if (type == 'integer') call hand_over(numbers)
    if (type == 'real') call hand_over(reals)
    if (type == 'logical') call hand_over(flags)
    if (type == 'derived type') call hand_over(points)
    if (type /= 'character') return
    allocate (words(n(1), n(2)))
    call hand_over(words)
  end subroutine

  subroutine pass_8_bytes(type, n)
    character(*), intent(in) :: type
    integer, intent(in) :: n(2)
    integer(8), pointer :: numbers(:, :)
    real(8), pointer :: reals(:, :)
    complex(4), pointer :: waves(:, :)
    logical(8), pointer :: flags(:, :)
    character(8), pointer :: words(:, :)
    type(eight_bytes), pointer :: points(:, :)
    type(c_ptr) :: memory
    memory = new_memory(8*product(n))
    call c_f_pointer(memory, numbers, n)
    call c_f_pointer(memory, reals, n)
    call c_f_pointer(memory, waves, n)
    call c_f_pointer(memory, flags, n)
    call c_f_pointer(memory, points, n)
    if (type == 'integer') call hand_over(numbers)
    if (type == 'real') call hand_over(reals)
    if (type == 'complex') call hand_over(waves)
    if (type == 'logical') call hand_over(flags)
    if (type == 'derived type') call hand_over(points)
    if (type /= 'character') return
    allocate (words(n(1), n(2)))
    call hand_over(words)
  end subroutine

  type(c_ptr) function new_memory(bytes)
    integer, intent(in) :: bytes
    integer(8), pointer :: words(:)
    allocate (words(bytes/8 + 1), source=0_8)
    new_memory = c_loc(words)
  end function

  !> An array that was never allocated, one that was deallocated, and pointers, on rank 0 alone.
  subroutine refuse_arrays_without_memory()
    real(8), allocatable, target :: never(:, :), no_more(:, :), sound(:, :)
    real(8), pointer :: nothing(:, :), nothing_more(:, :)
    integer :: n(2)
    n = grid%shape() + 2
    allocate (no_more(n(1), n(2)), sound(n(1), n(2)))
    sound = 0
    nothing => null()
    nothing_more => sound
    nothing_more => null()
    deallocate (no_more)
    do what = add, rebind
      if (own_rank() /= 0) then
        call expect_refusal_without_memory(sound, sound)
        call expect_refusal_without_memory(sound, sound)
        call expect_refusal_without_memory(sound, sound)
        call expect_refusal_without_memory(sound, sound)
      else
        call expect_refusal_without_memory(never, sound)
        call expect_refusal_without_memory(no_more, sound)
        call expect_refusal_without_memory(nothing, sound)
        call expect_refusal_without_memory(nothing_more, sound)
      end if
    end do
  end subroutine

  !> The array is passed to the current call of the program, after another one where there must be one.
  subroutine expect_refusal_without_memory(array, sound)
    type(*), dimension(..), intent(inout), target :: array
    real(8), intent(inout), target :: sound(:, :)
    text = ''
    if (what /= add) call halo%add(sound)
    if (what == rebind) call halo%open(grid, strategy=every_rank)
    call hand_over(array)
    if (what /= rebind) call halo%open(grid, strategy=every_rank, stat=stat, errmsg=text)
    call expect(stat == 2 .and. index(text, 'an array is not allocated, or a pointer is not') > 0, trim(text))
    call expect(own_rank() == 0 .or. index(text, 'rank 0: ') == 1, trim(text))
    call halo%free()
  end subroutine

  !> They are allocated, whatever their address is.
  subroutine refuse_arrays_without_points()
    real(8), allocatable, target :: none(:, :), u(:, :)
    allocate (none(0, 5), u(4, 5))
    call expect_refusal_of_size(none)
    call expect_refusal_of_size(u(3:2, :))
  end subroutine

  subroutine expect_refusal_of_size(array)
    real(8), intent(inout), target :: array(:, :)
    call halo%add(array)
    call halo%open(grid, stat=stat, errmsg=text)
    call expect(stat == 2 .and. index(text, 'array 1 has 0 points in dimension 1') > 0, trim(text))
  end subroutine

  subroutine refuse_arrays_of_assumed_size(array)
    integer, intent(inout), target :: array(1, *)
    call halo%add(array)
    call halo%open(grid, stat=stat, errmsg=text)
    call expect(stat == 2 .and. index(text, 'an array of assumed size has no last extent') > 0, trim(text))
  end subroutine

  subroutine forget_what_was_not_opened()
    real(8), allocatable, target :: u(:, :)
    integer :: n(2)
    n = grid%shape() + 2
    allocate (u(n(1), n(2)))
    call halo%add(u)
    call halo%free()
    call halo%add(u)
    call halo%open(grid, stat=stat, errmsg=text)
    call expect(stat == 0, 'an array that was added before free(): '//trim(text))
    call halo%free()
  end subroutine

  !> Some compilers pass these as they are, others a copy, which is gone when the exchange is opened: right or refused.
  subroutine refuse_copies(cells)
    integer, intent(in) :: cells(2)
    type(eight_bytes), allocatable, target :: points(:, :)
    complex(4), allocatable, target :: waves(:, :)
    character(4), allocatable, target :: words(:, :)
    class(eight_bytes), allocatable, target :: longer(:, :)
    real(4), allocatable, target :: sound(:, :)
    real(4), pointer :: part(:, :)
    integer :: n(2)
    call grid%create(world(), cells, periodic=[.true., .true.])
    n = grid%shape() + 2
    allocate (points(n(1), n(2)), waves(n(1), n(2)), words(n(1), n(2)), sound(n(1), n(2)))
    allocate (twelve_bytes :: longer(n(1), n(2)))
    points%a = -1
    points(2:n(1) - 1, 2:n(2) - 1)%a = own_rank()
    call halo%add(points%a)
    call halo%open(grid, stat=stat, errmsg=text)
    if (stat == 0) call halo%run()
    call expect_right_or_gone(points(2, 1)%a < 0 .or. points(1, 2)%a < 0)
    call halo%add(points%b)
    call halo%add(points%a)
    call halo%open(grid, stat=stat, errmsg=text)
    call expect_right_or_gone(.false.)
    waves = own_rank()
    part => waves%im
    call halo%add(part)
    call halo%open(grid, stat=stat, errmsg=text)
    call expect_right_or_gone(.false.)
    words = '....'
    call halo%add(words(:, :) (2:3))
    call halo%open(grid, stat=stat, errmsg=text)
    call expect_right_or_gone(.false.)
    call halo%add(longer)
    call halo%open(grid, stat=stat, errmsg=text)
    call expect(stat == 2 .and. index(text, 'a class() array of an extended type') > 0, trim(text))
    sound = 0
    call halo%add(sound)
    call halo%open(grid, strategy='ordered/p2p')
    call halo%rebind(points%a, stat=stat, errmsg=text)
    if (stat == 0) call halo%run(stat=stat, errmsg=text)
    call expect_right_or_gone(.false.)
    call halo%rebind(sound)
    call halo%run(stat=stat, errmsg=text)
    call expect(stat == 0, 'after a copy: '//trim(text))
    call halo%free()
    call grid%free()
  end subroutine

  subroutine expect_right_or_gone(is_wrong)
    logical, intent(in) :: is_wrong
    logical :: gone
    gone = index(text, 'no longer where it was') > 0 .or. index(text, 'share memory') > 0 .or. &
           index(text, 'differs in shape') > 0
    if (stat == 0) call expect(.not. is_wrong, 'halos of a copy')
    if (stat /= 0) call expect(stat == 2 .and. gone, trim(text))
  end subroutine

  !> add(), add_slot() or rebind() of an array of any type.
  subroutine hand_over(array)
    type(*), dimension(..), intent(inout), target :: array
    if (what == add) call halo%add(array)
    if (what == add_slot) call halo%add_slot(array)
    if (what == rebind) call halo%rebind(array, stat=stat, errmsg=text)
  end subroutine
end program
