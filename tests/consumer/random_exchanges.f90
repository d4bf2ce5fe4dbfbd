! Random exchanges through the Fortran module: every ghost right to the byte, everything else unchanged.
!   mpiexec -n N ./random_exchanges_f SEED ROUNDS
! All ranks draw the same numbers. Arrays are sections of larger blocks of bytes, viewed as points of several types;
! the right bytes are found one by one, from the offset of each point.
module random_numbers
  use, intrinsic :: iso_c_binding, only: c_int64_t
  implicit none
  integer(c_int64_t), private :: state = 1

contains

  subroutine begin_with(seed)
    integer, intent(in) :: seed
    integer :: n, ignored
    state = 1 + modulo(int(seed, c_int64_t)*7919, 2147483646_c_int64_t)
    do n = 1, 10
      ignored = draw(0, 1)
    end do
  end subroutine

  !> A number from `low` to `high`, both included. (Park and Miller's generator.)
  integer function draw(low, high)
    integer, intent(in) :: low, high
    state = mod(state*48271, 2147483647_c_int64_t)
    draw = low + int(mod(state/7, int(high - low + 1, c_int64_t)))
  end function

  logical function tossed()
    tossed = draw(0, 1) == 1
  end function

  function shuffled(count) result(order)
    integer, intent(in) :: count
    integer :: order(count), n, other, kept
    order = [(n, n=1, count)]
    do n = count, 2, -1
      other = draw(1, n)
      kept = order(n)
      order(n) = order(other)
      order(other) = kept
    end do
  end function
end module

module grids
  use, intrinsic :: iso_c_binding
  use random_numbers
  use haloscope
  implicit none

  interface
    include 'mpi_for_fortran.inc'
    integer(c_int) function cartesian_of(dims, ranks, wrap) bind(c)
      import :: c_int
      integer(c_int), value :: dims
      integer(c_int), intent(in) :: ranks(*), wrap(*)
    end function
  end interface

  type :: random_grid
    type(halo_grid) :: grid
    integer :: dims
    integer, allocatable :: cells(:), first(:), own(:)
    logical, allocatable :: periodic(:)
  contains
    procedure :: make
  end type

contains

  subroutine make(this)
    class(random_grid), intent(inout) :: this
    integer, allocatable :: split(:)
    integer :: d
    this%dims = draw(1, 3)
    split = split_of(this%dims)
    this%cells = [(2*split(d) + draw(0, 4), d=1, this%dims)]
    this%periodic = [(tossed(), d=1, this%dims)]
    select case (draw(1, 3))
    case (1)
      call this%grid%create(world(), this%cells, this%periodic, rule_of(split))
    case (2)
      call make_cartesian(this, split)
    case (3)
      call make_of_boxes(this, split)
    end select
    this%first = this%grid%first()
    this%own = this%grid%shape()
  end subroutine

  !> Ranks per dimension: the prime factors of their number, each to a random one.
  function split_of(dims) result(split)
    integer, intent(in) :: dims
    integer :: split(dims), rest, prime, d
    split = 1
    rest = rank_count()
    prime = 2
    do while (rest > 1)
      if (mod(rest, prime) /= 0) then
        prime = prime + 1
        cycle
      end if
      d = draw(1, dims)
      split(d) = split(d)*prime
      rest = rest/prime
    end do
  end function

  function rule_of(split) result(text)
    integer, intent(in) :: split(:)
    character(40) :: text
    write (text, '(*(i0, :, "x"))') split
  end function

  subroutine make_cartesian(this, split)
    class(random_grid), intent(inout) :: this
    integer, intent(in) :: split(:)
    integer :: axes(this%dims)
    integer(c_int) :: dims, ranks(this%dims), wrap(this%dims)
    dims = int(this%dims, c_int)
    axes = shuffled(this%dims)
    ranks(axes) = int(split, c_int)
    wrap(axes) = merge(1_c_int, 0_c_int, this%periodic)
    call this%grid%create_cartesian(cartesian_of(dims, ranks, wrap), this%cells, axes)
  end subroutine

  !> Uneven blocks, in any order of ranks.
  subroutine make_of_boxes(this, split)
    class(random_grid), intent(inout) :: this
    integer, intent(in) :: split(:)
    integer :: cuts(0:product(split), this%dims), first(this%dims), last(this%dims), order(product(split))
    integer :: d, n, place, rest
    cuts = 0
    do d = 1, this%dims
      do n = 1, split(d)
        cuts(n, d) = cuts(n - 1, d) + draw(2, 5)
      end do
      this%cells(d) = cuts(split(d), d)
    end do
    order = shuffled(size(order))
    rest = order(own_rank() + 1) - 1
    do d = 1, this%dims
      place = mod(rest, split(d))
      rest = rest/split(d)
      first(d) = cuts(place, d) + 1
      last(d) = cuts(place + 1, d)
    end do
    call this%grid%create_of_boxes(world(), this%cells, first, last, this%periodic)
  end subroutine
end module

module arrays
  use grids
  implicit none

  integer(c_int8_t), parameter :: canary = 90_c_int8_t, unfilled = -91_c_int8_t

  type, bind(c) :: triple
    real(c_double) :: a, b
    integer(c_int16_t) :: c
  end type

  !> One slot of a field: a block of canaries, of which a section holds the points.
  type :: block
    integer(c_int8_t), pointer :: bytes(:) => null()
  end type

  !> A section of memory, for a subroutine with the type of its points.
  type :: section
    type(c_ptr) :: address
    integer :: rank, shape_of_points(4), from(4), to(4), step(4)
  end type

  integer, parameter :: kinds = 7, bytes_of(kinds) = [1, 2, 4, 8, 4, 16, 24]

  type :: random_array
    integer :: kind, components, centring, dims
    integer :: low(3) = 0, high(3) = 0, points(3) = 1, between(3) = 0
    integer :: gap(3) = 1, margin(3) = 0
    logical :: backwards(3) = .false.
    type(block), allocatable :: slots(:)
  contains
    procedure :: draw_shape
    procedure :: renew
    procedure :: section_of
    procedure :: offset
    procedure :: fill
    procedure :: wrong_bytes
  end type

contains

  subroutine draw_shape(this, grid, slots)
    class(random_array), intent(inout) :: this
    type(random_grid), intent(in) :: grid
    integer, intent(in) :: slots
    integer :: d, slot
    this%dims = grid%dims
    this%kind = draw(1, kinds)
    this%components = merge(3, 1, draw(1, 3) == 1)
    this%centring = draw(int(halo_node), halo_face_1 + grid%dims - 1)
    if (tossed()) this%centring = halo_cell
    do d = 1, grid%dims
      this%low(d) = draw(0, 2)
      this%high(d) = draw(0, 2)
      this%between(d) = merge(1, 0, this%centring == halo_node .or. this%centring == halo_face_1 + d - 1)
      this%points(d) = grid%own(d) + this%between(d) + this%low(d) + this%high(d)
      this%gap(d) = merge(2, 1, draw(1, 3) == 1)
      this%margin(d) = draw(0, 1)
      this%backwards(d) = draw(1, 4) == 1
    end do
    allocate (this%slots(slots))
    do slot = 1, slots
      call this%renew(slot)
    end do
  end subroutine

  integer function point_bytes(this)
    type(random_array), intent(in) :: this
    point_bytes = bytes_of(this%kind)*this%components
  end function

  !> Points of the whole block by dimension, canaries between and around the array's points included.
  function whole(this) result(points)
    type(random_array), intent(in) :: this
    integer :: points(3)
    points = this%points*this%gap + 2*this%margin
  end function

  !> New memory for a slot. The old one is lost, as it is where a program allocates anew.
  subroutine renew(this, slot)
    class(random_array), intent(inout) :: this
    integer, intent(in) :: slot
    integer(c_int8_t), pointer :: old(:)
    old => this%slots(slot)%bytes
    allocate (this%slots(slot)%bytes(product(whole(this))*point_bytes(this)), source=canary)
    if (associated(old)) deallocate (old)
  end subroutine

  !> Offset of a point's first byte from the block's first, from 0. The array's first point is (1, 1, 1).
  integer function offset(this, at)
    class(random_array), intent(in) :: this
    integer, intent(in) :: at(3)
    integer :: n(3), place(3)
    n = whole(this)
    place = merge(this%points - at, at - 1, this%backwards)*this%gap + this%margin
    offset = (place(1) + n(1)*(place(2) + n(2)*place(3)))*point_bytes(this)
  end function

  type(section) function section_of(this, slot)
    class(random_array), intent(in) :: this
    integer, intent(in) :: slot
    integer :: n(3), first, d, axis, ends(2)
    n = whole(this)
    section_of%address = c_loc(this%slots(slot)%bytes)
    section_of%shape_of_points = 1
    section_of%from = 1
    section_of%to = 1
    section_of%step = 1
    first = merge(1, 0, this%components > 1)
    section_of%rank = first + this%dims
    if (first == 1) then
      section_of%shape_of_points(1) = this%components
      section_of%to(1) = this%components
    end if
    do d = 1, this%dims
      axis = first + d
      ends = this%margin(d) + 1 + [0, (this%points(d) - 1)*this%gap(d)]
      if (this%backwards(d)) ends = ends(2:1:-1)
      section_of%shape_of_points(axis) = n(d)
      section_of%from(axis) = ends(1)
      section_of%to(axis) = ends(2)
      section_of%step(axis) = merge(-this%gap(d), this%gap(d), this%backwards(d))
    end do
  end function

  !> The byte number `n` that the point at local `at` has by its global place.
  pure integer(c_int8_t) function value(this, grid, at, tag, n)
    class(random_array), intent(in) :: this
    type(random_grid), intent(in) :: grid
    integer, intent(in) :: at(3), tag, n
    integer(c_int64_t) :: mixed
    integer :: d, global
    mixed = tag
    do d = 1, grid%dims
      global = at(d) - this%low(d) - 1 + grid%first(d) - 1
      if (grid%periodic(d)) global = modulo(global, grid%cells(d))
      mixed = mod((mixed + global + 1)*48271, 2147483647_c_int64_t)
    end do
    mixed = mod((mixed + n)*48271, 2147483647_c_int64_t)
    value = int(mod(mixed/1024, 256_c_int64_t) - 128, c_int8_t)
  end function

  !> The side of the own points on which each coordinate is: -1, 0, 1.
  pure function sides(this, at)
    class(random_array), intent(in) :: this
    integer, intent(in) :: at(3)
    integer :: sides(3)
    sides = merge(-1, 0, at <= this%low) + merge(1, 0, at > this%points - this%high)
  end function

  !> True if a point is right after an exchange: an own one, or a requested ghost that has an origin.
  pure logical function right(this, grid, at, corners)
    class(random_array), intent(in) :: this
    type(random_grid), intent(in) :: grid
    integer, intent(in) :: at(3)
    logical, intent(in) :: corners
    integer :: d, global
    right = corners .or. count(sides(this, at) /= 0) <= 1
    do d = 1, grid%dims
      global = at(d) - this%low(d) - 1 + grid%first(d) - 1
      right = right .and. (grid%periodic(d) .or. (global >= 0 .and. global < grid%cells(d) + this%between(d)))
    end do
  end function

  subroutine fill(this, grid, slot, tag)
    class(random_array), intent(inout) :: this
    type(random_grid), intent(in) :: grid
    integer, intent(in) :: slot, tag
    integer :: i, j, k, n, place
    do k = 1, this%points(3)
      do j = 1, this%points(2)
        do i = 1, this%points(1)
          place = this%offset([i, j, k])
          do n = 1, point_bytes(this)
            if (all(sides(this, [i, j, k]) == 0)) then
              this%slots(slot)%bytes(place + n) = value(this, grid, [i, j, k], tag, n)
            else
              this%slots(slot)%bytes(place + n) = unfilled
            end if
          end do
        end do
      end do
    end do
  end subroutine

  !> Number of wrong bytes in a whole block: of points, and of the bytes between and around them.
  integer function wrong_bytes(this, grid, slot, tag, corners)
    class(random_array), intent(in) :: this
    type(random_grid), intent(in) :: grid
    integer, intent(in) :: slot, tag
    logical, intent(in) :: corners
    integer(c_int8_t), allocatable :: wanted(:)
    integer :: i, j, k, n, place
    allocate (wanted(size(this%slots(slot)%bytes)), source=canary)
    do k = 1, this%points(3)
      do j = 1, this%points(2)
        do i = 1, this%points(1)
          place = this%offset([i, j, k])
          wanted(place + 1:place + point_bytes(this)) = unfilled
          if (.not. right(this, grid, [i, j, k], corners)) cycle
          do n = 1, point_bytes(this)
            wanted(place + n) = value(this, grid, [i, j, k], tag, n)
          end do
        end do
      end do
    end do
    wrong_bytes = count(wanted /= this%slots(slot)%bytes)
  end function
end module

!> Calls that pass sections of each type to an exchange.
module hand_overs
  use arrays
  implicit none
  private
  public :: hand_over_section, exchange_of, slot_of_exchange, array_of_exchange

  integer, parameter, public :: add = 0, add_slot = 1, rebind = 2

  type(halo_exchange), pointer :: exchange_of => null()
  integer :: slot_of_exchange = 1, array_of_exchange = 1

  type(random_array), pointer :: asked
  integer :: what

contains

  !> add(), add_slot() or rebind() with slot `slot` of an array, as an array of its type and rank.
  subroutine hand_over_section(this, slot, how)
    type(random_array), intent(in), target :: this
    integer, intent(in) :: slot, how
    type(section) :: memory
    asked => this
    what = how
    slot_of_exchange = slot
    memory = this%section_of(slot)
    select case (this%kind)
    case (1)
      call view_logical(memory)
    case (2)
      call view_short(memory)
    case (3)
      call view_integer(memory)
    case (4)
      call view_double(memory)
    case (5)
      call view_real(memory)
    case (6)
      call view_complex(memory)
    case (7)
      call view_triple(memory)
    end select
  end subroutine

  subroutine hand_over(array)
    type(*), dimension(..), intent(inout), target :: array
    integer :: dims
    dims = asked%dims
    if (what == add) then
      call exchange_of%add(array, low=asked%low(1:dims), high=asked%high(1:dims), centring=asked%centring, dims=dims)
    else if (what == add_slot) then
      call exchange_of%add_slot(array)
    else
      call exchange_of%rebind(array, array_of_exchange, slot_of_exchange)
    end if
  end subroutine

  subroutine view_logical(memory)
    type(section), intent(in) :: memory
    logical(c_bool), pointer :: one(:), two(:, :), three(:, :, :), four(:, :, :, :)
    include 'add_section.inc'
  end subroutine

  subroutine view_short(memory)
    type(section), intent(in) :: memory
    integer(c_int16_t), pointer :: one(:), two(:, :), three(:, :, :), four(:, :, :, :)
    include 'add_section.inc'
  end subroutine

  subroutine view_integer(memory)
    type(section), intent(in) :: memory
    integer(c_int32_t), pointer :: one(:), two(:, :), three(:, :, :), four(:, :, :, :)
    include 'add_section.inc'
  end subroutine

  subroutine view_double(memory)
    type(section), intent(in) :: memory
    real(c_double), pointer :: one(:), two(:, :), three(:, :, :), four(:, :, :, :)
    include 'add_section.inc'
  end subroutine

  subroutine view_real(memory)
    type(section), intent(in) :: memory
    real(c_float), pointer :: one(:), two(:, :), three(:, :, :), four(:, :, :, :)
    include 'add_section.inc'
  end subroutine

  subroutine view_complex(memory)
    type(section), intent(in) :: memory
    complex(c_double_complex), pointer :: one(:), two(:, :), three(:, :, :), four(:, :, :, :)
    include 'add_section.inc'
  end subroutine

  subroutine view_triple(memory)
    type(section), intent(in) :: memory
    type(triple), pointer :: one(:), two(:, :), three(:, :, :), four(:, :, :, :)
    include 'add_section.inc'
  end subroutine
end module

program random_exchanges
  use hand_overs
  use arrays
  implicit none

  character(32), parameter :: strategies(5) = [character(32) :: 'ordered/p2p', 'ordered/persistent:datatype', &
                                               'direct:merged/p2p', 'direct/shared:packed', 'direct/auto']
  character(20) :: word
  integer :: seed, rounds, number

  call get_command_argument(1, word)
  read (word, *) seed
  call get_command_argument(2, word)
  read (word, *) rounds
  call begin_mpi()
  do number = 1, rounds
    call begin_with(1000*seed + number)
    call check_one()
  end do
  if (own_rank() == 0) print '(a)', 'right'
  call end_mpi()

contains

  subroutine check_one()
    type(random_grid) :: grid
    type(halo_exchange), target, save :: halo
    type(random_array), allocatable, target :: fields(:)
    integer :: n, slot, slots, turn
    logical :: corners, done
    call grid%make()
    slots = draw(1, 2)
    corners = draw(1, 10) <= 7
    exchange_of => halo
    allocate (fields(draw(1, 3)))
    do n = 1, size(fields)
      call fields(n)%draw_shape(grid, slots)
      call hand_over_section(fields(n), 1, add)
      do slot = 2, slots
        call hand_over_section(fields(n), slot, add_slot)
      end do
    end do
    call halo%open(grid%grid, strategy=trim(strategies(draw(1, size(strategies)))), corners=corners)
    do turn = 1, 2*slots
      slot = 1 + mod(turn, slots)
      do n = 1, size(fields)
        if (tossed()) call give_new_memory(fields(n), n, slot)
        call fields(n)%fill(grid, slot, 10*turn + n)
      end do
      if (tossed()) then
        call halo%run(slot)
      else
        call halo%start(slot)
        done = halo%progress()
        call halo%finish()
      end if
      do n = 1, size(fields)
        call expect(fields(n)%wrong_bytes(grid, slot, 10*turn + n, corners), n, slot, turn)
      end do
    end do
    call halo%free()
    call grid%grid%free()
  end subroutine

  subroutine give_new_memory(field, n, slot)
    type(random_array), intent(inout), target :: field
    integer, intent(in) :: n, slot
    call field%renew(slot)
    array_of_exchange = n
    call hand_over_section(field, slot, rebind)
  end subroutine

  subroutine expect(wrong, n, slot, turn)
    integer, intent(in) :: wrong, n, slot, turn
    if (wrong == 0) return
    print '(7(a, i0))', 'rank ', own_rank(), ', exchange ', number, ' of seed ', seed, ', array ', n, ', slot ', slot, &
      ', turn ', turn, ': wrong bytes: ', wrong
    error stop 1
  end subroutine
end program
