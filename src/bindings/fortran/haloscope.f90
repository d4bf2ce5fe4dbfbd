!> Haloscope for Fortran: grids of the ranks of a communicator, and halo exchanges of the program's arrays.
!!
!!     type(halo_grid) :: grid
!!     type(halo_exchange) :: halo
!!     real(8), allocatable, target :: u(:, :)
!!     call grid%create(comm, [512, 384], periodic=[.true., .true.])
!!     associate (n => grid%shape())
!!       allocate (u(0:n(1) + 1, 0:n(2) + 1))
!!     end associate
!!     call halo%add(u, halo=1)
!!     call halo%open(grid)
!!     call halo%run()
!!
!! Communicators are integers, as module `mpi` has them; with `mpi_f08` pass comm%mpi_val. Dimension 1 of a grid is the
!! first axis of arrays, whose lower bounds may be any. Arrays that are exchanged have the attribute TARGET, are
!! writable and stay at their address, or see rebind(); sections of arrays work too. Arrays may be in the memory of a
!! device (CUDA Fortran, or their addresses there: `!$acc host_data use_device`, `!$omp target data use_device_addr`).
!! Buffers that take turns are slots: add_slot(), run(slot).
!!
!! Integers and logicals that are passed may have 4 or 8 bytes, each by itself: codes that are compiled with
!! -fdefault-integer-8 or -fdefault-real-8 use the same module. They are CLASS(*), since procedures that differ in
!! optional arguments alone cannot be generic. Texts are CLASS(*) too where an array may have characters: gfortran passes
!! the length of these in the place of a text's. An argument of another type, or a number that is too large for the
!! library, is refused by its name when the call is made. Results have 4 bytes, or the kind of `mold`.
!!
!! Every procedure that can fail takes `stat` (0: no failure, 1: something broke, 2: the request can never work, 3: this
!! build cannot serve it) and `errmsg`; without `stat` it ends the program and prints the reason. All of them are called
!! by all ranks in the same order, and fail on all of them where the request of one rank is impossible; but start() and
!! run() with an argument that is wrong on one rank fail there alone, and the others wait for it. A fault in add() or
!! add_slot() is a failure of open(). shape() and first() end the program where 4 bytes are too few for their
!! results.
!!
!! A grid or an exchange that is assigned to another variable is the same one there, until one of the two is freed.
module haloscope
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  private
  public :: halo_grid, halo_exchange, halo_redistribution, halo_cell, halo_node, halo_face_1, halo_face_2, halo_face_3
  public :: halo_fixed, halo_even, halo_odd, halo_nearest
  public :: halo_fold_none, halo_fold_node, halo_fold_cell, halo_panels, halo_seam, halo_cubed_sphere

  !> Location of the points of a quantity: in cells, on nodes, on faces normal to a dimension.
  enum, bind(c)
    enumerator :: halo_cell, halo_node, halo_face_1, halo_face_2, halo_face_3
  end enum

  !> Ghost points beyond an edge of a grid that does not wrap around: they keep their values; have the values of the
  !! inner points mirrored at the edge, unchanged or negated (a wall, whose normal velocity is odd); have the nearest
  !! inner value (an open boundary).
  enum, bind(c)
    enumerator :: halo_fixed, halo_even, halo_odd, halo_nearest
  end enum
  enum, bind(c)
    enumerator :: halo_fold_none, halo_fold_node, halo_fold_cell
  end enum

  integer, parameter :: ok = 0, failed = 1, usage = 2, longest_text = 400, longest_type = 48
  integer(c_int64_t), parameter :: no_integer = -huge(0_c_int64_t) - 1
  integer(c_int32_t), parameter :: no_flag = -1
  integer(c_int32_t), parameter :: call_accumulate = 0, call_check_clean = 1, call_rebind = 2  ! HS_CALL_
  integer(c_int32_t), parameter :: call_share = 3, call_run_at = 4

  type, bind(c) :: hs_box
    integer(c_int64_t) :: lo(3), hi(3)
  end type

  type, bind(c) :: hs_grid_options
    integer(c_int64_t) :: struct_size, cells(3)
    integer(c_int32_t) :: dims, split, periodic(3), rank_order(3), axes(3), holes
    type(hs_box) :: owned
    type(c_ptr) :: process_grid, nodes
    integer(c_int32_t) :: reorder, node_count
    type(c_ptr) :: problem
    integer(c_int32_t) :: problem_status, active_ranks, block_count
    type(c_ptr) :: blocks
    integer(c_int32_t) :: fold, panel_count
    type(c_ptr) :: panels, seams
    integer(c_int32_t) :: seam_count, reserved
  end type

  type, bind(c) :: hs_seam
    integer(c_int32_t) :: panel(2), dimension(2), side(2), reversed, reserved = 0
  end type

  type, bind(c) :: hs_grid_data
    integer(c_int64_t) :: struct_size, cells(3)
    integer(c_int32_t) :: periodic(3), ranks(3), dims, size, blocks, several, fold, panels
  end type

  type, bind(c) :: hs_field
    integer(c_int64_t) :: struct_size
    type(c_ptr) :: first
    integer(c_int64_t) :: stride(3)
    integer(c_int32_t) :: element_bytes, type, centring, low(3), high(3), number_bytes
    type(c_ptr) :: name
    integer(c_int32_t) :: edges(2, 3) = halo_fixed, on_high_face(3) = 0, vector = 0, along = 0
    integer(c_int32_t) :: reserved = 0
  end type

  type, bind(c) :: hs_exchange_options
    integer(c_int64_t) :: struct_size
    type(c_ptr) :: strategy
    integer(c_int32_t) :: corners, slots, guard, reserved
  end type

  type, bind(c) :: hs_part
    integer(c_int64_t) :: struct_size
    type(c_ptr) :: only
    integer(c_int32_t) :: count, depth, low(3), high(3), ghost_rows, reserved
  end type

  !> Two edges of panels that meet, with as many cells each: the cells beyond one are the cells inside the other.
  type :: halo_seam
    integer(c_int32_t) :: panel(2) = 1        !< of the first edge and the second one, from 1
    integer(c_int32_t) :: dimension(2) = 1    !< 1 or 2, across the edge
    logical :: high(2) = .false.              !< the edge is at the panel's last cells in this dimension
    logical :: reversed = .false.             !< the first cell along one edge is the last one along the other
  end type

  !> The panels of a grid, blocks of cells that meet only at seams, turned against each other or not: the faces of a
  !! cubed sphere. See halo_cubed_sphere().
  type :: halo_panels
    integer(c_int64_t), allocatable :: first(:, :), last(:, :)  !< global numbers of cells, from 1: (dimension, panel)
    type(halo_seam), allocatable :: seams(:)
  end type

  !> A grid split over the ranks of a communicator.
  type :: halo_grid
    private
    type(c_ptr) :: handle = c_null_ptr
    integer :: dims = 0
    integer(c_int64_t) :: low(3) = 0, high(3) = 1  ! of the first block
    integer :: count = 0                           ! of this rank's blocks
    logical :: several = .false.                   ! blocks of some rank
  contains
    procedure :: create => grid_create
    procedure :: create_cartesian => grid_create_cartesian
    procedure :: create_of_boxes => grid_create_of_boxes
    procedure :: create_of_blocks => grid_create_of_blocks
    procedure :: blocks => grid_blocks
    procedure :: block_shape => grid_block_shape
    procedure :: block_first => grid_block_first
    procedure, private :: shape_in_4_bytes, shape_in_8_bytes, first_in_4_bytes, first_in_8_bytes
    generic :: shape => shape_in_4_bytes, shape_in_8_bytes
    generic :: first => first_in_4_bytes, first_in_8_bytes
    procedure :: free => grid_free
    procedure :: sum => grid_sum
    procedure :: dot => grid_dot
    procedure :: norm => grid_norm
    procedure :: sum_field => grid_sum_field
    procedure :: dot_fields => grid_dot_fields
    procedure :: norm_field => grid_norm_field
    procedure :: write => grid_write
    procedure :: read => grid_read
    procedure :: write_field => grid_write_field
    procedure :: read_field => grid_read_field
    procedure, private :: make
  end type

  !> An array that was added to an exchange: its layout in memory and, until the exchange is open, the address of its
  !! first owned point in each slot.
  type :: added
    type(hs_field) :: field
    character(longest_type) :: type = ''
    logical :: infers = .false.  ! its centring, at open()
    type(c_ptr), allocatable :: first(:)
    integer(c_int64_t) :: extent(3) = 0
    integer(c_int32_t) :: room_low(3) = 0, room_high(3) = 0  ! layers of the array, at least the field's
    integer(c_int32_t) :: dims = 0
    logical :: on_host = .true.
    logical :: moved = .false.             ! by rebind(), and not checked since
    type(c_ptr) :: moved_to = c_null_ptr   ! its first owned point
    type(c_ptr) :: alive(2) = c_null_ptr   ! its latest checked addresses
  end type

  !> The place of a field in a file.
  type :: field_file
    character(kind=c_char) :: path(longest_text + 1) = c_null_char
    character(kind=c_char) :: order(longest_text + 1) = c_null_char
    logical :: has_offset = .false.  ! the file is of another format than .npy
    integer(c_int64_t) :: offset = 0
  end type

  !> An exchange of some arrays: add() them, open() it, then run() it, or start() and finish(), as often as needed.
  type :: halo_exchange
    private
    type(c_ptr) :: handle = c_null_ptr
    type(added), allocatable :: arrays(:)  ! for the next open()
    type(added), allocatable :: bound(:)   ! the arrays of the open exchange; the library stores their addresses
    integer(c_int32_t) :: slots = 0        ! of each of them
    integer :: each = 0                    ! arrays of each block
    integer :: dims = 0
    character(longest_text) :: problem = ''
    integer(c_int32_t) :: problem_status = usage
  contains
    procedure :: add => exchange_add
    procedure :: add_slot => exchange_add_slot
    procedure :: open => exchange_open
    procedure :: start => exchange_start
    procedure :: progress => exchange_progress
    procedure :: finish => exchange_finish
    procedure :: run => exchange_run
    procedure :: run_at => exchange_run_at
    procedure :: rebind => exchange_rebind
    procedure :: start_accumulate => exchange_start_accumulate
    procedure :: accumulate => exchange_accumulate
    procedure :: start_share => exchange_start_share
    procedure :: share => exchange_share
    procedure :: changed => exchange_changed
    procedure :: require_fresh => exchange_require_fresh
    procedure :: check_clean => exchange_check_clean
    procedure :: report => exchange_report
    procedure :: free => exchange_free
  end type

  !> A redistribution of arrays to another split of their grid: add() pairs of them, open() it between two grids, then
  !! run() it, or start() and finish(), as often as needed.
  type :: halo_redistribution
    private
    type(c_ptr) :: handle = c_null_ptr
    type(halo_exchange) :: sources, targets  ! the arrays, for the next open()
  contains
    procedure :: add => redistribution_add
    procedure :: add_source => redistribution_add_source
    procedure :: add_target => redistribution_add_target
    procedure :: open => redistribution_open
    procedure :: start => redistribution_start
    procedure :: progress => redistribution_progress
    procedure :: finish => redistribution_finish
    procedure :: run => redistribution_run
    procedure :: report => redistribution_report
    procedure :: free => redistribution_free
  end type

  interface take
    procedure :: take_number, take_numbers, take_long_numbers
  end interface

  interface take_flag
    procedure :: take_flag, take_flags
  end interface

  abstract interface
    integer(c_int32_t) function call_on_handle(handle) bind(c)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: handle
    end function
    integer(c_int32_t) function call_for_text(handle, text) bind(c)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: handle
      type(c_ptr), intent(out) :: text
    end function
    integer(c_int32_t) function call_on_progress(handle, done) bind(c)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: handle
      integer(c_int32_t), intent(out) :: done
    end function
    integer(c_int32_t) function call_on_slot(exchange, slot) bind(c)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: exchange
      integer(c_int32_t), value :: slot
    end function
    integer(c_int32_t) function call_on_stream(exchange, slot, stream) bind(c)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: exchange, stream
      integer(c_int32_t), value :: slot
    end function
    integer(c_int32_t) function call_on_field(grid, field, total) bind(c)
      import :: c_int32_t, c_ptr, c_double, hs_field
      type(c_ptr), value :: grid
      type(hs_field), intent(in) :: field(*)
      real(c_double), intent(out) :: total
    end function
    integer(c_int32_t) function call_on_file(grid, field, type, order, path) bind(c)
      import :: c_int32_t, c_ptr, c_char, hs_field
      type(c_ptr), value :: grid, type
      type(hs_field), intent(in) :: field(*)
      character(kind=c_char), intent(in) :: order(*), path(*)
    end function
    integer(c_int32_t) function call_on_part_of_file(grid, field, path, offset) bind(c)
      import :: c_int32_t, c_int64_t, c_ptr, c_char, hs_field
      type(c_ptr), value :: grid
      type(hs_field), intent(in) :: field(*)
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int64_t), value :: offset
    end function
    integer(c_int32_t) function call_that_refuses(grid, status, text) bind(c)
      import :: c_int32_t, c_ptr, c_char
      type(c_ptr), value :: grid
      integer(c_int32_t), value :: status
      character(kind=c_char), intent(in) :: text(*)
    end function
    integer(c_int32_t) function call_on_addresses(exchange, slot, first) bind(c)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: exchange
      integer(c_int32_t), value :: slot
      type(c_ptr), intent(in) :: first(*)
    end function
    integer(c_int32_t) function call_on_part(exchange, part, slot) bind(c)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: exchange, part
      integer(c_int32_t), value :: slot
    end function
    integer(c_int32_t) function call_on_part_and_stream(exchange, part, slot, stream) bind(c)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: exchange, part, stream
      integer(c_int32_t), value :: slot
    end function
  end interface

  ! gfortran passes arguments with VALUE by reference in the second call of such a procedure by its name, so these are
  ! called by name once.
  procedure(call_on_handle), bind(c) :: hs_grid_free, hs_exchange_finish, hs_exchange_free, hs_redistribution_finish, &
    hs_redistribution_free
  procedure(call_for_text), bind(c) :: hs_exchange_report, hs_redistribution_report
  procedure(call_on_progress), bind(c) :: hs_exchange_progress, hs_redistribution_progress
  procedure(call_on_slot), bind(c) :: hs_exchange_check_clean, hs_redistribution_start, hs_redistribution_run
  procedure(call_on_stream), bind(c) :: hs_exchange_check_clean_on
  procedure(call_on_addresses), bind(c) :: hs_exchange_rebind, hs_exchange_run_at
  procedure(call_on_field), bind(c) :: hs_grid_sum, hs_grid_norm
  procedure(call_on_file), bind(c) :: hs_grid_write, hs_grid_read
  procedure(call_on_part_of_file), bind(c) :: hs_grid_write_at, hs_grid_read_at
  procedure(call_that_refuses), bind(c) :: hs_grid_refuse_write, hs_grid_refuse_read
  procedure(call_on_part), bind(c) :: hs_exchange_start_part, hs_exchange_run_part, &
    hs_exchange_start_accumulate_part, hs_exchange_accumulate_part, hs_exchange_start_share, hs_exchange_share
  procedure(call_on_part_and_stream), bind(c) :: hs_exchange_start_part_on, hs_exchange_run_part_on, &
    hs_exchange_start_accumulate_part_on, hs_exchange_accumulate_part_on, hs_exchange_start_share_on, hs_exchange_share_on

  interface
    subroutine hs_grid_init_sized(options, size) bind(c)
      import :: c_size_t, hs_grid_options
      type(hs_grid_options), intent(out) :: options
      integer(c_size_t), value :: size
    end subroutine
    integer(c_int32_t) function hs_grid_create_f(comm, options, grid) bind(c)
      import :: c_int, c_int32_t, c_ptr, hs_grid_options
      integer(c_int), value :: comm
      type(hs_grid_options), intent(in) :: options
      type(c_ptr), intent(out) :: grid
    end function
    integer(c_int32_t) function hs_grid_block(grid, block, owned) bind(c)
      import :: c_int32_t, c_ptr, hs_box
      type(c_ptr), value :: grid
      integer(c_int32_t), value :: block
      type(hs_box), intent(inout) :: owned
    end function
    integer(c_int32_t) function hs_cubed_sphere(edge, levels, panels, seams) bind(c)
      import :: c_int32_t, c_int64_t, hs_box, hs_seam
      integer(c_int64_t), value :: edge, levels
      type(hs_box), intent(inout) :: panels(6)
      type(hs_seam), intent(inout) :: seams(12)
    end function
    integer(c_int32_t) function hs_grid_get(grid, data) bind(c)
      import :: c_int32_t, c_ptr, hs_grid_data
      type(c_ptr), value :: grid
      type(hs_grid_data), intent(inout) :: data
    end function
    integer(c_int32_t) function hs_grid_dot(grid, field, other, total) bind(c)
      import :: c_int32_t, c_ptr, c_double, hs_field
      type(c_ptr), value :: grid
      type(hs_field), intent(in) :: field(*), other(*)
      real(c_double), intent(out) :: total
    end function
    integer(c_int32_t) function hs_grid_refuse_sum(grid, status, text) bind(c)
      import :: c_int32_t, c_ptr, c_char
      type(c_ptr), value :: grid
      integer(c_int32_t), value :: status
      character(kind=c_char), intent(in) :: text(*)
    end function
    integer(c_int32_t) function hs_grid_agree(grid, status, text) bind(c)
      import :: c_int32_t, c_ptr, c_char
      type(c_ptr), value :: grid
      integer(c_int32_t), value :: status
      character(kind=c_char), intent(in) :: text(*)
    end function
    integer(c_int32_t) function hs_fortran_field(array, dims, room, centring, first, field, extent, text, size) bind(c)
      import :: c_int32_t, c_int64_t, c_ptr, c_char, hs_field
      type(*), dimension(..), intent(in) :: array
      integer(c_int32_t), value :: dims, centring, size
      integer(c_int32_t), intent(in) :: room(3)
      type(c_ptr), intent(inout) :: first
      type(hs_field), intent(inout) :: field
      integer(c_int64_t), intent(out) :: extent(3)
      character(kind=c_char), intent(inout) :: text(*)
    end function
    integer(c_int32_t) function hs_fortran_is_on_host(array) bind(c)
      import :: c_int32_t
      type(*), dimension(..), intent(in) :: array
    end function
    integer(c_int32_t) function hs_fortran_is_freed(field, room, extent, first) bind(c)
      import :: c_int32_t, c_int64_t, c_ptr, hs_field
      type(hs_field), intent(in) :: field
      integer(c_int32_t), intent(in) :: room(3)
      integer(c_int64_t), intent(in) :: extent(3)
      type(c_ptr), value :: first
    end function
    subroutine hs_fortran_type(array, text, size) bind(c)
      import :: c_int32_t, c_char
      type(*), dimension(..), intent(in) :: array
      character(kind=c_char), intent(inout) :: text(*)
      integer(c_int32_t), value :: size
    end subroutine
    subroutine hs_exchange_init_sized(options, size) bind(c)
      import :: c_size_t, hs_exchange_options
      type(hs_exchange_options), intent(out) :: options
      integer(c_size_t), value :: size
    end subroutine
    integer(c_int32_t) function hs_exchange_create(grid, fields, count, options, exchange) bind(c)
      import :: c_int32_t, c_ptr, hs_field, hs_exchange_options
      type(c_ptr), value :: grid
      type(hs_field), intent(in) :: fields(*)
      integer(c_int32_t), value :: count
      type(hs_exchange_options), intent(in) :: options
      type(c_ptr), intent(out) :: exchange
    end function
    integer(c_int32_t) function hs_exchange_finish_on(exchange, stream) bind(c)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: exchange, stream
    end function
    integer(c_int32_t) function hs_redistribution_create(from, to, sources, targets, count, options, redistribution) bind(c)
      import :: c_int32_t, c_ptr, hs_field, hs_exchange_options
      type(c_ptr), value :: from, to
      type(hs_field), intent(in) :: sources(*), targets(*)
      integer(c_int32_t), value :: count
      type(hs_exchange_options), intent(in) :: options
      type(c_ptr), intent(out) :: redistribution
    end function
    subroutine hs_part_init_sized(part, size) bind(c)
      import :: c_size_t, hs_part
      type(hs_part), intent(out) :: part
      integer(c_size_t), value :: size
    end subroutine
    integer(c_int32_t) function hs_exchange_first(exchange, slot, first) bind(c)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: exchange
      integer(c_int32_t), value :: slot
      type(c_ptr), intent(inout) :: first(*)
    end function
    integer(c_int32_t) function hs_exchange_changed(exchange, slot, fresh) bind(c)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: exchange
      integer(c_int32_t), value :: slot, fresh
    end function
    integer(c_int32_t) function hs_exchange_require_fresh(exchange, depth, slot) bind(c)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: exchange
      integer(c_int32_t), value :: depth, slot
    end function
    integer(c_int32_t) function hs_exchange_changed_on(exchange, slot, fresh, stream) bind(c)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: exchange, stream
      integer(c_int32_t), value :: slot, fresh
    end function
    integer(c_int32_t) function hs_exchange_refuse(exchange, call, status, text) bind(c)
      import :: c_int32_t, c_ptr, c_char
      type(c_ptr), value :: exchange
      integer(c_int32_t), value :: call, status
      character(kind=c_char), intent(in) :: text(*)
    end function
    subroutine hs_exhausted_memory(purpose, bytes, text, size) bind(c)
      import :: c_int32_t, c_int64_t, c_char
      character(kind=c_char), intent(in) :: purpose(*)
      integer(c_int64_t), value :: bytes
      character(kind=c_char), intent(inout) :: text(*)
      integer(c_int32_t), value :: size
    end subroutine
    function hs_last_error() result(text) bind(c)
      import :: c_ptr
      type(c_ptr) :: text
    end function
    pure integer(c_size_t) function strlen(text) bind(c)
      import :: c_size_t, c_ptr
      type(c_ptr), value, intent(in) :: text
    end function
  end interface

contains

  !> Splits `cells` (global, 1 to 3 numbers) over the ranks of `comm` into blocks as even as possible. Collective.
  !! @param periodic      dimensions that wrap around; default none.
  !! @param process_grid  "cubic", "square", "prime-factors", "slabs", or ranks by dimension as "2x3"; default: as close
  !!                      to cubes or squares as possible. Rank numbers run along the first dimension first.
  !! @param reorder       ranks may be mapped to other blocks, so that neighbours share nodes and sockets; default
  !!                      false. first() returns this rank's cells.
  !! @param nodes         node of each rank, equal on all ranks, to emulate nodes on one machine; default: machines.
  !! @param active_ranks  ranks that own cells, the first ones, for coarse grids and gathered fields; default: all;
  !!                      where no process grid of all ranks fits the cells, the largest number that fits.
  !! @param fold          halo_fold_node or halo_fold_cell: exchanges fill the rows beyond the last one of the second
  !!                      dimension from rows before it in reverse, as at the north of tripolar ocean grids, and make
  !!                      points on the fold equal; default halo_fold_none. Fields with halo_odd there change their sign.
  !! @param panels        the panels of the grid, which meet at seams of the first two dimensions: exchanges fill the
  !!                      points beyond an edge from the panel that it meets, and points beyond a corner where the ways
  !!                      around both of its edges lead to one place. Each block lies in one panel. The grid is not
  !!                      periodic in these dimensions. Accumulations, shares and arrays of devices need a grid without.
  !! Fails for cells or ranks that do not fit each other, and a Cartesian communicator that is split in another way.
  subroutine grid_create(this, comm, cells, periodic, process_grid, stat, errmsg, reorder, nodes, active_ranks, fold, &
                         panels)
    class(halo_grid), intent(inout) :: this
    class(*), intent(in) :: comm, cells(:)
    class(*), intent(in), optional :: periodic(:)
    character(*), intent(in), optional :: process_grid
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    class(*), intent(in), optional :: reorder, nodes(:), active_ranks, fold
    type(halo_panels), intent(in), optional :: panels
    character(kind=c_char), target :: rule(longest_text + 1)
    integer(c_int32_t), allocatable, target :: node_of(:)
    type(hs_grid_options) :: options
    character(longest_text) :: problem
    integer :: lacking
    call begin_options(options, cells, periodic, fold, problem)
    if (present(process_grid)) then
      call take_text(process_grid, 'process_grid', rule, problem)
      options%process_grid = c_loc(rule)
    end if
    call take_flag(reorder, 'reorder', options%reorder, problem)
    call take(active_ranks, 'active_ranks', options%active_ranks, problem)
    if (present(nodes)) then
      allocate (node_of(max(1, size(nodes))), source=0_c_int32_t, stat=lacking)
      if (lacking /= 0) then
        call note_exhausted('nodes of ranks', 4_c_int64_t*size(nodes), problem, options%problem_status)
      else
        call take(nodes, 'nodes', node_of, problem)
        options%nodes = c_loc(node_of)
        options%node_count = size(node_of)
      end if
    end if
    call this%make(comm, options, problem, stat, errmsg, panels)
  end subroutine

  !> Splits a grid as a communicator of MPI_Cart_create: by its positions, order of ranks and periods. Collective.
  !! @param axes      the communicator's dimension, from 1, of each dimension of the grid; 0: it does not split that
  !!                  one, as the columns of a grid of 3 dimensions on a communicator of 2; default 1, 2, 3.
  !! @param periodic  of dimensions that are not split; default none.
  subroutine grid_create_cartesian(this, comm, cells, axes, stat, errmsg, periodic, fold)
    class(halo_grid), intent(inout) :: this
    class(*), intent(in) :: comm, cells(:)
    class(*), intent(in), optional :: axes(:)
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    class(*), intent(in), optional :: periodic(:), fold
    type(hs_grid_options) :: options
    character(longest_text) :: problem
    call begin_options(options, cells, periodic, fold, problem)
    options%split = 1
    options%axes = [1, 2, 3]
    call take(axes, 'axes', options%axes(1:counted(options%dims)), problem)
    options%axes = options%axes - 1
    call this%make(comm, options, problem, stat, errmsg)
  end subroutine

  !> Splits a grid by the cells that each rank specifies: uneven blocks, any order of ranks. Collective.
  !! @param first  global number, from 1, of this rank's first cell by dimension. @param last  of its last one; below
  !!               first: this rank owns no cells.
  !! @param holes  true: cells may belong to no rank; default false.
  !! Fails for blocks that overlap, leave a gap or do not line up, and names the cell, counted from 0.
  subroutine grid_create_of_boxes(this, comm, cells, first, last, periodic, holes, stat, errmsg, fold, panels)
    class(halo_grid), intent(inout) :: this
    class(*), intent(in) :: comm, cells(:), first(:), last(:)
    class(*), intent(in), optional :: periodic(:), holes, fold
    type(halo_panels), intent(in), optional :: panels
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    type(hs_grid_options) :: options
    character(longest_text) :: problem
    call begin_options(options, cells, periodic, fold, problem)
    options%split = 2
    options%owned%lo = 1
    call take(first, 'first', options%owned%lo(1:counted(options%dims)), problem)
    options%owned%lo = options%owned%lo - 1
    call take(last, 'last', options%owned%hi(1:counted(options%dims)), problem)
    call take_flag(holes, 'holes', options%holes, problem)
    call this%make(comm, options, problem, stat, errmsg, panels)
  end subroutine

  !> Splits a grid into the blocks that each rank specifies, which may be several: tiles, blocks that a balancer has
  !! dealt out. Collective. An exchange takes the arrays of a rank's first block, then the same ones of the next;
  !! sum_field() adds up a field of an exchange, write_field() writes it. Arrays of devices need one block a rank.
  !! @param first  global numbers, from 1, of the first cell of each of this rank's blocks: (dimension, block); of size
  !!               0 in the second dimension: this rank owns no cells. @param last  of the last ones.
  !! @param holes  true: cells may belong to no rank; default false.
  !! Fails as create_of_boxes() does, and for an empty block among several.
  subroutine grid_create_of_blocks(this, comm, cells, first, last, periodic, holes, stat, errmsg, fold, panels)
    class(halo_grid), intent(inout) :: this
    class(*), intent(in) :: comm, cells(:), first(:, :), last(:, :)
    class(*), intent(in), optional :: periodic(:), holes, fold
    type(halo_panels), intent(in), optional :: panels
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    type(hs_grid_options) :: options
    type(hs_box), allocatable, target :: boxes(:)
    character(longest_text) :: problem
    integer :: block, dims, lacking
    call begin_options(options, cells, periodic, fold, problem)
    options%split = 2
    call take_flag(holes, 'holes', options%holes, problem)
    if (problem == '' .and. size(first, 2) /= size(last, 2)) write (problem, '(2(a, i0), a)') 'first names ', &
      size(first, 2), ' blocks and last names ', size(last, 2), '; pass both for each block of this rank'
    allocate (boxes(max(1, size(first, 2))), stat=lacking)
    if (lacking /= 0) call note_exhausted('blocks', 48_c_int64_t*size(first, 2), problem, options%problem_status)
    if (problem == '') then
      dims = counted(options%dims)
      do block = 1, size(first, 2)
        boxes(block)%lo = 1
        boxes(block)%hi = 1
        call take(first(:, block), 'first', boxes(block)%lo(1:dims), problem)
        boxes(block)%lo = boxes(block)%lo - 1
        call take(last(:, block), 'last', boxes(block)%hi(1:dims), problem)
      end do
      options%blocks = c_loc(boxes)
      options%block_count = size(first, 2)
    end if
    call this%make(comm, options, problem, stat, errmsg, panels)
  end subroutine

  subroutine begin_options(options, cells, periodic, fold, problem)
    type(hs_grid_options), intent(out) :: options
    class(*), intent(in) :: cells(:)
    class(*), intent(in), optional :: periodic(:), fold
    character(*), intent(out) :: problem
    problem = ''
    call hs_grid_init_sized(options, c_sizeof(options))
    options%dims = size(cells)
    if (size(cells) <= 3) call take(cells, 'cells', options%cells(1:size(cells)), problem)
    call take_flag(periodic, 'periodic', options%periodic(1:counted(options%dims)), problem)
    call take(fold, 'fold', options%fold, problem)
  end subroutine

  !> Returns the six faces of a cube of edge x edge cells each, in a row in the first dimension, x, which fit a grid of
  !! 6*edge x edge cells; with levels, of 6*edge x edge x levels. They have the order of MITgcm's cubed spheres. Of faces
  !! 1, 3, 5 the high x edge meets the low x edge of the next face, and the high y edge the low x edge of the next but
  !! one, reversed. Of faces 2, 4, 6 the high y edge meets the low y edge of the next face, and the high x edge the low y
  !! edge of the next but one, reversed. Local. Ends the program for less than 1 cell.
  function halo_cubed_sphere(edge, levels) result(panels)
    class(*), intent(in) :: edge
    class(*), intent(in), optional :: levels
    type(halo_panels) :: panels
    type(hs_box) :: boxes(6)
    type(hs_seam) :: seams(12)
    character(longest_text) :: problem
    integer :: n, dims
    integer(c_int32_t) :: length, height
    length = 0
    height = 1
    problem = ''
    call take(edge, 'edge', length, problem)
    call take(levels, 'levels', height, problem)
    dims = merge(3, 2, present(levels))
    if (problem /= '' .or. hs_cubed_sphere(int(length, c_int64_t), int(height, c_int64_t), boxes, seams) /= ok) &
      error stop 'haloscope: halo_cubed_sphere() needs integers, at least 1 cell and 1 level'
    allocate (panels%first(dims, 6), panels%last(dims, 6), panels%seams(12))
    do n = 1, 6
      panels%first(:, n) = boxes(n)%lo(:dims) + 1
      panels%last(:, n) = boxes(n)%hi(:dims)
    end do
    do n = 1, 12
      panels%seams(n) = halo_seam(seams(n)%panel + 1, seams(n)%dimension + 1, seams(n)%side == 1, &
                                  seams(n)%reversed == 1)
    end do
  end function

  !> Takes panels as structs of C.
  subroutine take_panels(panels, options, boxes, seams, problem)
    type(halo_panels), intent(in) :: panels
    type(hs_grid_options), intent(inout) :: options
    type(hs_box), allocatable, target, intent(inout) :: boxes(:)
    type(hs_seam), allocatable, target, intent(inout) :: seams(:)
    character(*), intent(inout) :: problem
    integer :: n, dims, lacking
    dims = counted(options%dims)
    if (.not. (allocated(panels%first) .and. allocated(panels%last) .and. allocated(panels%seams))) then
      if (problem == '') problem = 'panels has no first, last or seams; allocate all three'
    else if (size(panels%first, 1) /= dims .or. any(shape(panels%first) /= shape(panels%last))) then
      if (problem == '') problem = 'first and last of panels have another shape than (dimensions, panels)'
    else
      allocate (boxes(size(panels%first, 2)), seams(size(panels%seams)), stat=lacking)
      if (lacking /= 0) then
        call note_exhausted('panels', 48_c_int64_t*size(panels%first, 2), problem, options%problem_status)
        return
      end if
      do n = 1, size(boxes)
        boxes(n)%lo(:dims) = panels%first(:, n) - 1
        boxes(n)%hi(:dims) = panels%last(:, n)
      end do
      do n = 1, size(seams)
        associate (seam => panels%seams(n))
          seams(n) = hs_seam(seam%panel - 1, seam%dimension - 1, merge(1, 0, seam%high), merge(1, 0, seam%reversed))
        end associate
      end do
      options%panels = c_loc(boxes)
      options%seams = c_loc(seams)
      options%panel_count = size(boxes)
      options%seam_count = size(seams)
    end if
  end subroutine

  subroutine make(this, comm, options, problem, stat, errmsg, panels)
    class(halo_grid), intent(inout) :: this
    class(*), intent(in) :: comm
    type(hs_grid_options), intent(inout) :: options
    character(*), intent(in) :: problem
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    type(halo_panels), intent(in), optional :: panels
    type(hs_box), allocatable, target :: boxes(:)
    type(hs_seam), allocatable, target :: seams(:)
    character(kind=c_char), target :: text(longest_text + 1)
    character(longest_text) :: no_communicator, wrong
    integer(c_int32_t) :: status, communicator
    type(hs_grid_data) :: data
    type(hs_box) :: owned
    call let_grid_go(this, status, wrong)
    if (problem /= '') wrong = problem
    no_communicator = ''
    call take(comm, 'comm', communicator, no_communicator)
    if (no_communicator /= '') then
      call refuse(trim(no_communicator)//'; of a type(MPI_Comm) it is comm%mpi_val', stat, errmsg)
      return
    end if
    if (present(panels)) call take_panels(panels, options, boxes, seams, wrong)
    if (wrong /= '') then
      text = c_text(wrong)
      options%problem = c_loc(text)
    end if
    status = hs_grid_create_f(communicator, options, this%handle)
    data%struct_size = c_sizeof(data)
    if (status == ok) status = hs_grid_get(this%handle, data)
    if (status == ok) status = hs_grid_block(this%handle, 0, owned)
    if (status == ok) then
      this%count = data%blocks
      this%several = data%several /= 0
      this%dims = options%dims
      this%low = owned%lo
      this%high = owned%hi
    end if
    call conclude(status, stat, errmsg)
  end subroutine

  !> The number of this rank's blocks. Local.
  pure integer function grid_blocks(this) result(count)
    class(halo_grid), intent(in) :: this
    count = this%count
  end function

  !> The cells of a block of this rank, by dimension. Local. Ends the program for a block that the rank lacks.
  !! @param block  from 1.
  function grid_block_shape(this, block) result(cells)
    class(halo_grid), intent(in) :: this
    class(*), intent(in) :: block
    integer(c_int32_t) :: cells(this%dims)
    type(hs_box) :: box
    integer :: d
    box = block_of(this, number_of_block(block))
    do d = 1, this%dims
      cells(d) = in_4_bytes(box%hi(d) - box%lo(d), 'block_shape')
    end do
  end function

  !> The global number of the first cell of a block of this rank, from 1, by dimension; as block_shape().
  function grid_block_first(this, block) result(cell)
    class(halo_grid), intent(in) :: this
    class(*), intent(in) :: block
    integer(c_int32_t) :: cell(this%dims)
    type(hs_box) :: box
    integer :: d
    box = block_of(this, number_of_block(block))
    do d = 1, this%dims
      cell(d) = in_4_bytes(box%lo(d) + 1, 'block_first')
    end do
  end function

  !> The number of a block; 0 for an argument that is not an integer, or too large.
  integer function number_of_block(block) result(number)
    class(*), intent(in) :: block
    character(longest_text) :: problem
    integer(c_int32_t) :: found
    problem = ''
    found = 0
    call take(block, 'block', found, problem)
    number = found
  end function

  !> The cells of a block of this rank; of block 1 of none: none. @param block  from 1.
  function block_of(grid, block) result(box)
    class(halo_grid), intent(in) :: grid
    integer, intent(in) :: block
    type(hs_box) :: box
    if (hs_grid_block(grid%handle, int(block - 1, c_int32_t), box) /= ok) &
      error stop 'haloscope: a call names a block that this rank lacks; blocks are numbered from 1 to blocks()'
  end function

  pure subroutine require_one_block(grid, name)
    class(halo_grid), intent(in) :: grid
    character(*), intent(in) :: name
    if (grid%several) &
      error stop 'haloscope: '//name//'() was called on a grid of several blocks a rank; call block_'//name//'(block)'
  end subroutine

  !> The cells that this rank owns, by dimension: integers of 4 bytes, or of the kind of `mold`. Local.
  pure function shape_in_4_bytes(this, mold) result(cells)
    class(halo_grid), intent(in) :: this
    integer(c_int32_t), intent(in), optional :: mold
    integer(c_int32_t) :: cells(this%dims)
    integer :: d
    call require_one_block(this, 'shape')
    do d = 1, this%dims
      cells(d) = in_4_bytes(this%high(d) - this%low(d), 'shape')
    end do
  end function

  pure function shape_in_8_bytes(this, mold) result(cells)
    class(halo_grid), intent(in) :: this
    integer(c_int64_t), intent(in) :: mold
    integer(c_int64_t) :: cells(this%dims)
    call require_one_block(this, 'shape')
    cells = int(this%high(1:this%dims) - this%low(1:this%dims), kind(mold))
  end function

  !> The global number of this rank's first cell, from 1, by dimension: integers of 4 bytes, or of the kind of `mold`.
  !! Local.
  pure function first_in_4_bytes(this, mold) result(cell)
    class(halo_grid), intent(in) :: this
    integer(c_int32_t), intent(in), optional :: mold
    integer(c_int32_t) :: cell(this%dims)
    integer :: d
    call require_one_block(this, 'first')
    do d = 1, this%dims
      cell(d) = in_4_bytes(this%low(d) + 1, 'first')
    end do
  end function

  pure function first_in_8_bytes(this, mold) result(cell)
    class(halo_grid), intent(in) :: this
    integer(c_int64_t), intent(in) :: mold
    integer(c_int64_t) :: cell(this%dims)
    call require_one_block(this, 'first')
    cell = this%low(1:this%dims) + 1
  end function

  !> Converts a number. Ends the program where 4 bytes are too few.
  pure integer(c_int32_t) function in_4_bytes(number, name) result(short)
    integer(c_int64_t), intent(in) :: number
    character(*), intent(in) :: name
    if (number > huge(short)) &
      error stop 'haloscope: '//name//'() has numbers that do not fit in 4 bytes; call '//name//'(mold=0_8)'
    short = int(number, c_int32_t)
  end function

  !> Frees a grid. Local. Exchanges on the grid stay. Fails for a grid that was freed by a copy of this variable, and
  !! forgets it.
  subroutine grid_free(this, stat, errmsg)
    class(halo_grid), intent(inout) :: this
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    character(longest_text) :: problem
    integer(c_int32_t) :: status
    call let_grid_go(this, status, problem)
    call conclude(status, stat, errmsg, problem)
  end subroutine

  !> @param problem  out: the reason of a failure; '' without one.
  subroutine let_grid_go(this, status, problem)
    class(halo_grid), intent(inout) :: this
    integer(c_int32_t), intent(out) :: status
    character(*), intent(out) :: problem
    problem = ''
    status = hs_grid_free(this%handle)
    if (status /= ok) call copy_text(hs_last_error(), problem)
    this%handle = c_null_ptr
    this%dims = 0
  end subroutine

  !> Returns the sum of an array over the points of the grid, each of which counts once, without ghost layers. It has the
  !! same bits on any number of ranks and for any split of the grid. Of nodes and faces that several ranks hold, the
  !! value counts that share() gives to all of them.
  !! @param array     real(4) or real(8), with its ghost layers; its axes are the grid's.
  !! @param halo      ghost layers that it has on every side; default 0. @param low, high  by dimension, in its place.
  !! @param centring  halo_cell (default), halo_node, halo_face_1, ...
  !! Collective; two reductions. Fails on all ranks for other types, and for an array of another size.
  function grid_sum(this, array, halo, low, high, centring, stat, errmsg) result(total)
    class(halo_grid), intent(in) :: this
    type(*), dimension(..), intent(in), target :: array
    class(*), intent(in), optional :: halo, low(:), high(:), centring
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    real(c_double) :: total
    call reduce(this, hs_grid_sum, array, total, halo, low, high, centring, stat=stat, errmsg=errmsg)
  end function

  !> Returns the square root of the sum of the squares of an array's numbers, as sum(). Points may have several numbers,
  !! in the first axes, and be complex.
  !! @param dims  of the grid; default: the rank of the array. Others: see sum().
  function grid_norm(this, array, halo, low, high, centring, dims, stat, errmsg) result(total)
    class(halo_grid), intent(in) :: this
    type(*), dimension(..), intent(in), target :: array
    class(*), intent(in), optional :: halo, low(:), high(:), centring, dims
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    real(c_double) :: total
    call reduce(this, hs_grid_norm, array, total, halo, low, high, centring, dims, stat, errmsg)
  end function

  !> Returns the sum of the products of two arrays' numbers, as sum(). Both have the same ghost layers and centring.
  !! @param dims  of the grid; default: the rank of the array. Others: see sum().
  function grid_dot(this, array, other, halo, low, high, centring, dims, stat, errmsg) result(total)
    class(halo_grid), intent(in) :: this
    type(*), dimension(..), intent(in), target :: array, other
    class(*), intent(in), optional :: halo, low(:), high(:), centring, dims
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    real(c_double) :: total
    type(added), target :: one, two
    type(c_ptr), target :: first, second
    character(longest_text) :: problem
    integer(c_int32_t) :: status
    total = 0
    problem = ''
    call describe_points(this, array, one, first, problem, halo, low, high, centring, dims)
    call describe_points(this, other, two, second, problem, halo, low, high, centring, dims)
    if (problem == '') then
      status = hs_grid_dot(this%handle, [one%field], [two%field], total)
    else
      status = hs_grid_refuse_sum(this%handle, usage, c_text(problem))
    end if
    call conclude(status, stat, errmsg)
  end function

  !> Makes a call that reduces an array to a number. @param total  out: the number. Others: see grid_sum().
  subroutine reduce(grid, call_on, array, total, halo, low, high, centring, dims, stat, errmsg)
    class(halo_grid), intent(in) :: grid
    procedure(call_on_field) :: call_on
    type(*), dimension(..), intent(in), target :: array
    real(c_double), intent(out) :: total
    class(*), intent(in), optional :: halo, low(:), high(:), centring, dims
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    type(added), target :: one
    type(c_ptr), target :: first
    character(longest_text) :: problem
    integer(c_int32_t) :: status
    total = 0
    problem = ''
    call describe_points(grid, array, one, first, problem, halo, low, high, centring, dims)
    if (problem == '') then
      status = call_on(grid%handle, [one%field], total)
    else
      status = hs_grid_refuse_sum(grid%handle, usage, c_text(problem))
    end if
    call conclude(status, stat, errmsg)
  end subroutine

  !> Returns the sum of a field of an open exchange over all blocks, as sum(): for grids of several blocks a rank.
  !! @param exchange  opened on this grid. @param field  its number among the arrays of a block, from 1.
  !! @param slot      buffer of the field, from 1; default 1.
  !! Collective; two reductions. Fails on all ranks for a field that the exchange lacks, and as sum().
  function grid_sum_field(this, exchange, field, slot, stat, errmsg) result(total)
    class(halo_grid), intent(in) :: this
    class(halo_exchange), intent(in) :: exchange
    class(*), intent(in) :: field
    class(*), intent(in), optional :: slot
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    real(c_double) :: total
    call reduce_field(this, hs_grid_sum, exchange, field, total, slot, stat, errmsg)
  end function

  !> Returns the square root of the sum of the squares of a field's numbers on all blocks, as norm(). Others: see
  !! sum_field().
  function grid_norm_field(this, exchange, field, slot, stat, errmsg) result(total)
    class(halo_grid), intent(in) :: this
    class(halo_exchange), intent(in) :: exchange
    class(*), intent(in) :: field
    class(*), intent(in), optional :: slot
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    real(c_double) :: total
    call reduce_field(this, hs_grid_norm, exchange, field, total, slot, stat, errmsg)
  end function

  !> Returns the sum of the products of the numbers of two fields of one centring on all blocks, as dot(). Others: see
  !! sum_field().
  function grid_dot_fields(this, exchange, field, other, slot, stat, errmsg) result(total)
    class(halo_grid), intent(in) :: this
    class(halo_exchange), intent(in) :: exchange
    class(*), intent(in) :: field, other
    class(*), intent(in), optional :: slot
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    real(c_double) :: total
    type(hs_field), allocatable :: one(:), two(:)
    type(c_ptr), allocatable, target :: first(:), second(:)
    character(longest_text) :: problem
    integer(c_int32_t) :: status
    total = 0
    problem = ''
    call list_blocks(this, exchange, field, slot, one, first, problem, status)
    if (problem == '') call list_blocks(this, exchange, other, slot, two, second, problem, status)
    if (problem == '') then
      status = hs_grid_dot(this%handle, one, two, total)
    else
      status = hs_grid_refuse_sum(this%handle, status, c_text(problem))
    end if
    call conclude(status, stat, errmsg)
  end function

  !> Makes a call that reduces a field of an exchange to a number. @param total  out: the number. Others: see sum_field().
  subroutine reduce_field(grid, call_on, exchange, field, total, slot, stat, errmsg)
    class(halo_grid), intent(in) :: grid
    procedure(call_on_field) :: call_on
    class(halo_exchange), intent(in) :: exchange
    class(*), intent(in) :: field
    real(c_double), intent(out) :: total
    class(*), intent(in), optional :: slot
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    type(hs_field), allocatable :: fields(:)
    type(c_ptr), allocatable, target :: first(:)
    character(longest_text) :: problem
    integer(c_int32_t) :: status
    total = 0
    problem = ''
    call list_blocks(grid, exchange, field, slot, fields, first, problem, status)
    if (problem == '') then
      status = call_on(grid%handle, fields, total)
    else
      status = hs_grid_refuse_sum(grid%handle, status, c_text(problem))
    end if
    call conclude(status, stat, errmsg)
  end subroutine

  !> Lists a field of an open exchange: that of each block of this rank. @param first  out: addresses, which `fields`
  !! refers to. @param status  out: of a problem.
  subroutine list_blocks(grid, exchange, field, slot, fields, first, problem, status)
    class(halo_grid), intent(in) :: grid
    class(halo_exchange), intent(in) :: exchange
    class(*), intent(in) :: field
    class(*), intent(in), optional :: slot
    type(hs_field), allocatable, intent(out) :: fields(:)
    type(c_ptr), allocatable, target, intent(out) :: first(:)
    character(*), intent(inout) :: problem
    integer(c_int32_t), intent(out) :: status
    integer(c_int32_t) :: number, place
    integer :: n, at, lacking
    status = usage
    number = 1
    place = 1
    call take(field, 'field', number, problem)
    call take(slot, 'slot', place, problem)
    call check_field(grid, exchange, number, place, problem)
    if (problem /= '') return
    call get_addresses(exchange, place - 1, first, problem, status)
    if (problem /= '') return
    allocate (fields(max(1, grid%blocks())), stat=lacking)
    if (lacking /= 0) then
      call note_exhausted('the list of fields', size(exchange%bound)*c_sizeof(c_null_ptr), problem, status)
      return
    end if
    do n = 1, size(fields)
      at = (n - 1)*exchange%each + number
      fields(n) = exchange%bound(at)%field
      fields(n)%first = c_loc(first(at))
    end do
  end subroutine

  !> Finds a field, from 1, or a slot that an exchange lacks, and blocks of another grid.
  subroutine check_field(grid, exchange, number, place, problem)
    class(halo_grid), intent(in) :: grid
    class(halo_exchange), intent(in) :: exchange
    integer(c_int32_t), intent(in) :: number, place
    character(*), intent(inout) :: problem
    integer :: n, at, d
    if (problem /= '') return
    if (.not. c_associated(exchange%handle)) then
      problem = 'the exchange is not open; name its arrays by add(), then call open()'
    else if (number < 1 .or. number > exchange%each) then
      write (problem, '(2(a, i0))') 'no field ', number, ' exists; the fields of a block are numbered from 1 to ', &
        exchange%each
    else if (place < 1 .or. place > exchange%slots) then
      write (problem, '(2(a, i0))') 'no slot ', place, ' exists; slots are numbered from 1 to ', exchange%slots
    else if (size(exchange%bound) /= exchange%each*max(1, grid%blocks())) then
      problem = 'the exchange was opened on a grid of other blocks; pass one that was opened on this grid'
    end if
    if (problem /= '') return
    do n = 1, max(1, grid%blocks())
      at = (n - 1)*exchange%each + number
      do d = 1, grid%dims
        call check_extent(exchange%bound(at), block_of(grid, n), d, at, problem)
      end do
    end do
  end subroutine

  !> Writes the points of an array that this rank owns to a file in NumPy's format .npy, which any number of ranks reads.
  !! Collective. Ghost layers are not written; a point that several ranks hold is written by its owner.
  !! @param path  of the file; until it is complete, it is PATH.part. numpy.load() returns an array of the same axes.
  !! @param order  'F' (default), or 'C': the file lists its axes from the last on, as files of C and Python do.
  !! @param offset  of the first point, in bytes, in a file of another format that exists and has these bytes, such as a
  !!                contiguous dataset of HDF5 (h5dget_offset_f); only the points are written then, see docs/use.
  !! @param halo, low, high, centring, dims  see sum(); the array may have any type and axes before the grid's.
  !! Fails, on all ranks, for an array that does not fit the grid, and where the file system fails.
  subroutine grid_write(this, array, path, halo, low, high, centring, dims, stat, errmsg, order, offset)
    class(halo_grid), intent(in) :: this
    type(*), dimension(..), intent(in), target :: array
    class(*), intent(in) :: path
    class(*), intent(in), optional :: halo, low(:), high(:), centring, dims, order, offset
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    call move_file(this, .true., array, path, halo, low, high, centring, dims, stat, errmsg, order, offset)
  end subroutine

  !> Reads the points of an array that this rank holds from such a file, written on any number of ranks. Collective.
  !! @param path, halo, low, high, centring, dims, order, offset  see write().
  !! Fails, on all ranks, also for a file of another format, type or shape.
  subroutine grid_read(this, array, path, halo, low, high, centring, dims, stat, errmsg, order, offset)
    class(halo_grid), intent(in) :: this
    type(*), dimension(..), intent(inout), target :: array
    class(*), intent(in) :: path
    class(*), intent(in), optional :: halo, low(:), high(:), centring, dims, order, offset
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    call move_file(this, .false., array, path, halo, low, high, centring, dims, stat, errmsg, order, offset)
  end subroutine

  !> Moves an array to a file, if `writes`, or from it.
  subroutine move_file(grid, writes, array, path, halo, low, high, centring, dims, stat, errmsg, order, offset)
    class(halo_grid), intent(in) :: grid
    logical, intent(in) :: writes
    type(*), dimension(..), intent(in), target :: array
    class(*), intent(in) :: path
    class(*), intent(in), optional :: halo, low(:), high(:), centring, dims, order, offset
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    type(added) :: one
    type(c_ptr), target :: first
    type(field_file) :: file
    character(longest_text) :: problem
    problem = ''
    call describe_points(grid, array, one, first, problem, halo, low, high, centring, dims)
    call take_file(path, order, offset, file, problem)
    call transfer_fields(grid, writes, [one%field], file, problem, usage, stat, errmsg)
  end subroutine

  !> Writes a field of an open exchange, in all blocks, to a file, as write(): for grids of several blocks a rank.
  !! @param exchange, field, slot  see sum_field(). @param path, order, offset  see write().
  subroutine grid_write_field(this, exchange, field, path, slot, stat, errmsg, order, offset)
    class(halo_grid), intent(in) :: this
    class(halo_exchange), intent(in) :: exchange
    class(*), intent(in) :: field, path
    class(*), intent(in), optional :: slot, order, offset
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    call move_field_file(this, .true., exchange, field, path, slot, stat, errmsg, order, offset)
  end subroutine

  !> Reads a field of an open exchange, in all blocks, from a file, as read(). Others: see write_field().
  subroutine grid_read_field(this, exchange, field, path, slot, stat, errmsg, order, offset)
    class(halo_grid), intent(in) :: this
    class(halo_exchange), intent(in) :: exchange
    class(*), intent(in) :: field, path
    class(*), intent(in), optional :: slot, order, offset
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    call move_field_file(this, .false., exchange, field, path, slot, stat, errmsg, order, offset)
  end subroutine

  !> Moves a field of an exchange to a file, if `writes`, or from it.
  subroutine move_field_file(grid, writes, exchange, field, path, slot, stat, errmsg, order, offset)
    class(halo_grid), intent(in) :: grid
    logical, intent(in) :: writes
    class(halo_exchange), intent(in) :: exchange
    class(*), intent(in) :: field, path
    class(*), intent(in), optional :: slot, order, offset
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    type(hs_field), allocatable :: fields(:)
    type(c_ptr), allocatable, target :: first(:)
    type(field_file) :: file
    character(longest_text) :: problem
    integer(c_int32_t) :: status
    problem = ''
    call take_file(path, order, offset, file, problem)
    call list_blocks(grid, exchange, field, slot, fields, first, problem, status)
    call transfer_fields(grid, writes, fields, file, problem, status, stat, errmsg)
  end subroutine

  !> Moves fields to a file or from it, or fails on all ranks with `failure` where this one has a problem.
  !! @param fields  absent where there is a problem.
  subroutine transfer_fields(grid, writes, fields, file, problem, failure, stat, errmsg)
    class(halo_grid), intent(in) :: grid
    logical, intent(in) :: writes
    type(hs_field), intent(in), optional :: fields(:)
    type(field_file), intent(in) :: file
    character(*), intent(in) :: problem
    integer(c_int32_t), intent(in) :: failure
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    integer(c_int32_t) :: status
    if (problem /= '' .and. writes) then
      status = hs_grid_refuse_write(grid%handle, failure, c_text(problem))
    else if (problem /= '') then
      status = hs_grid_refuse_read(grid%handle, failure, c_text(problem))
    else if (file%has_offset .and. writes) then
      status = hs_grid_write_at(grid%handle, fields, file%path, file%offset)
    else if (file%has_offset) then
      status = hs_grid_read_at(grid%handle, fields, file%path, file%offset)
    else if (writes) then
      status = hs_grid_write(grid%handle, fields, c_null_ptr, file%order, file%path)
    else
      status = hs_grid_read(grid%handle, fields, c_null_ptr, file%order, file%path)
    end if
    call conclude(status, stat, errmsg)
  end subroutine

  !> Takes the path of a file, the order of its axes, and the offset of the points.
  subroutine take_file(path, order, offset, file, problem)
    class(*), intent(in) :: path
    class(*), intent(in), optional :: order, offset
    type(field_file), intent(out) :: file
    character(*), intent(inout) :: problem
    call take_any_text(path, 'path', file%path, problem)
    file%order(1) = 'F'
    if (present(order)) call take_any_text(order, 'order', file%order, problem)
    file%has_offset = present(offset)
    if (.not. present(offset)) return
    file%offset = integer_of(offset)
    call check_number(file%offset, 'offset', huge(file%offset), problem)
  end subroutine

  subroutine take_any_text(given, name, letters, problem)
    class(*), intent(in) :: given
    character(*), intent(in) :: name
    character(kind=c_char), intent(out) :: letters(:)
    character(*), intent(inout) :: problem
    letters = c_null_char
    select type (given)
    type is (character(*))
      call take_text(given, name, letters, problem)
    class default
      if (problem == '') problem = "argument '"//name//"' is not a text; pass a character variable or constant"
    end select
  end subroutine

  !> Describes an array of a grid for sums and files. @param first  out: address of the first owned point, which `one` refers to.
  subroutine describe_points(grid, array, one, first, problem, halo, low, high, centring, dims)
    class(halo_grid), intent(in) :: grid
    type(*), dimension(..), intent(in), target :: array
    type(added), intent(inout) :: one
    type(c_ptr), intent(inout), target :: first
    character(*), intent(inout) :: problem
    class(*), intent(in), optional :: halo, low(:), high(:), centring, dims
    integer(c_int32_t) :: layers
    integer :: d
    one%dims = rank(array)
    call take(dims, 'dims', one%dims, problem)
    call take_centring(one, problem, centring)
    layers = 0
    call take(halo, 'halo', layers, problem)
    one%room_low = layers
    one%room_high = layers
    call take(low, 'low', one%room_low(1:counted(one%dims)), problem)
    call take(high, 'high', one%room_high(1:counted(one%dims)), problem)
    one%field%low = one%room_low
    one%field%high = one%room_high
    call describe(array, one, first, problem)
    one%field%first = c_loc(first)
    if (problem == '' .and. one%dims /= grid%dims) write (problem, '(2(a, i0), a)') 'an array of ', one%dims, &
      ' dimensions was passed to a call on a grid of ', grid%dims, '; pass the number of the grid''s axes as dims='
    if (problem == '' .and. grid%several) problem = 'the grid has several blocks a rank: pass a field of an open '// &
      'exchange to sum_field(), dot_fields(), norm_field(), write_field() or read_field()'
    if (problem /= '') return
    do d = 1, grid%dims
      call check_extent(one, block_of(grid, 1), d, 1, problem)
    end do
  end subroutine

  !> Adds an array to the exchange, before open(). Local.
  !! @param array     any type and rank, with its halo; its last axes are the grid's, axes before them components of a
  !!                  point, which must be contiguous. It has the attribute TARGET. open() refuses a copy that a compiler
  !!                  has passed in its place, see docs/use/languages.md, and an array of assumed size.
  !! @param halo      ghost layers that are filled on every side; default 1. @param low, high  by dimension, in its
  !!                  place.
  !! @param centring  halo_cell, halo_node, halo_face_1, ...: one point more in such dimensions. Default: cells, faces of
  !!                  the one dimension in which the array has a point more than cells and room, or nodes if it has one
  !!                  more in all.
  !! @param dims      of the grid; default: the rank of the array.
  !! @param room      ghost layers that the array has on every side; default: those that are filled.
  !! @param room_low, room_high  by dimension, in its place.
  !! @param edges_low, edges_high  halo_fixed (default), halo_even, halo_odd or halo_nearest, by dimension.
  !! @param high_faces  dimensions in which values of cells lie on the high faces, as velocities of ocean models do in
  !!                    arrays of one shape; default none. Only folds and seams of the grid depend on it.
  !! @param vector    number of the vector field that this is a component of, in directions of the grid: across a seam
  !!                  its first dimension may be its second one, or opposite; across a fold it changes its sign. Reals
  !!                  of 4 or 8 bytes. Default 0: none.
  !! @param along     dimension of the component; default 1.
  subroutine exchange_add(this, array, halo, low, high, centring, dims, room, room_low, room_high, edges_low, &
                          edges_high, high_faces, vector, along)
    class(halo_exchange), intent(inout) :: this
    type(*), dimension(..), intent(inout), target :: array
    class(*), intent(in), optional :: halo, low(:), high(:), centring, dims, room, room_low(:), room_high(:), &
      edges_low(:), edges_high(:), high_faces(:), vector, along
    type(added) :: one
    type(c_ptr) :: first
    integer(c_int32_t) :: layers
    one%dims = rank(array)
    call take(dims, 'dims', one%dims, this%problem)
    call take_centring(one, this%problem, centring)
    layers = 1
    call take(halo, 'halo', layers, this%problem)
    one%field%low = layers
    one%field%high = layers
    call take(low, 'low', one%field%low(1:counted(one%dims)), this%problem)
    call take(high, 'high', one%field%high(1:counted(one%dims)), this%problem)
    call take_room(one, this%problem, room, room_low, room_high)
    call take(edges_low, 'edges_low', one%field%edges(1, 1:counted(one%dims)), this%problem)
    call take(edges_high, 'edges_high', one%field%edges(2, 1:counted(one%dims)), this%problem)
    call take_flag(high_faces, 'high_faces', one%field%on_high_face(1:counted(one%dims)), this%problem)
    call take(vector, 'vector', one%field%vector, this%problem)
    one%field%along = 1
    call take(along, 'along', one%field%along, this%problem)
    one%field%along = one%field%along - 1
    call describe(array, one, first, this%problem)
    this%dims = max(this%dims, one%dims)
    call append_slot(one, first, this%problem, this%problem_status)
    if (allocated(one%first)) call append(this, one)
  end subroutine

  !> Takes the centring of an array; without one, its extents determine it: infer_centring().
  subroutine take_centring(one, problem, centring)
    type(added), intent(inout) :: one
    character(*), intent(inout) :: problem
    class(*), intent(in), optional :: centring
    one%field%centring = halo_cell
    one%infers = .not. present(centring)
    call take(centring, 'centring', one%field%centring, problem)
  end subroutine

  !> Infers the centring of an array without one from its points beyond the cells and the room of its rank.
  subroutine infer_centring(one, grid, block)
    type(added), intent(inout) :: one
    class(halo_grid), intent(in) :: grid
    type(hs_box), intent(in) :: block
    integer(c_int64_t) :: more
    integer :: d, staggered, last
    staggered = 0
    do d = 1, grid%dims
      more = one%extent(d) - (block%hi(d) - block%lo(d)) - one%room_low(d) - one%room_high(d)
      if (.not. one%infers .or. (more /= 0 .and. more /= 1)) return
      staggered = staggered + int(more)
      if (more == 1) last = d
    end do
    if (staggered == grid%dims) then
      one%field%centring = halo_node
    else if (staggered == 1) then
      one%field%centring = halo_face_1 + last - 1
    end if
  end subroutine

  !> Takes the layers that an array has, which are not fewer than those that are filled.
  subroutine take_room(one, problem, room, low, high)
    type(added), intent(inout) :: one
    character(*), intent(inout) :: problem
    class(*), intent(in), optional :: room, low(:), high(:)
    integer(c_int32_t) :: layers
    integer :: n
    n = counted(one%dims)
    one%room_low(:n) = one%field%low(:n)
    one%room_high(:n) = one%field%high(:n)
    if (present(room)) then
      layers = 0
      call take(room, 'room', layers, problem)
      one%room_low(:n) = layers
      one%room_high(:n) = layers
    end if
    call take(low, 'room_low', one%room_low(:n), problem)
    call take(high, 'room_high', one%room_high(:n), problem)
    if (problem == '' .and. (any(one%room_low(:n) < one%field%low(:n)) .or. any(one%room_high(:n) < one%field%high(:n)))) &
      problem = 'an array has room for fewer ghost layers than are filled; pass a larger room, or a smaller halo'
  end subroutine

  !> Appends an array, and moves its slots there. Where memory is exhausted, open() fails.
  subroutine append(this, one)
    class(halo_exchange), intent(inout) :: this
    type(added), intent(inout) :: one
    type(added), allocatable :: longer(:)
    integer :: n, count, lacking
    count = 0
    if (allocated(this%arrays)) count = size(this%arrays)
    allocate (longer(count + 1), stat=lacking)
    if (lacking /= 0) then
      call note_exhausted('the list of arrays', (count + 1)*(storage_size(one, c_int64_t)/8), this%problem, &
                          this%problem_status)
      return
    end if
    do n = 1, count
      call move_added(this%arrays(n), longer(n))
    end do
    call move_added(one, longer(count + 1))
    call move_alloc(longer, this%arrays)
  end subroutine

  !> Moves an array without a copy of the slots, for which memory may be missing.
  subroutine move_added(from, to)
    type(added), intent(inout) :: from, to
    to%field = from%field
    to%type = from%type
    to%infers = from%infers
    to%extent = from%extent
    to%room_low = from%room_low
    to%room_high = from%room_high
    to%dims = from%dims
    to%on_host = from%on_host
    call move_alloc(from%first, to%first)
  end subroutine

  !> Appends a slot, by the address of its first owned point. Where memory is exhausted, open() fails.
  subroutine append_slot(one, first, problem, status)
    type(added), intent(inout) :: one
    type(c_ptr), intent(in) :: first
    character(*), intent(inout) :: problem
    integer(c_int32_t), intent(inout) :: status
    type(c_ptr), allocatable :: longer(:)
    integer :: n, count, lacking
    count = 0
    if (allocated(one%first)) count = size(one%first)
    allocate (longer(count + 1), stat=lacking)
    if (lacking /= 0) then
      call note_exhausted('the list of slots', (count + 1)*c_sizeof(first), problem, status)
      return
    end if
    do n = 1, count
      longer(n) = one%first(n)
    end do
    longer(count + 1) = first
    call move_alloc(longer, one%first)
  end subroutine

  !> Adds a further buffer of the array that was added last: its next slot. Slots take turns, as old and new values do.
  !! Local.
  !! @param array  of the same type and shape as the first buffer, with the same distances between its points; TARGET.
  !! All arrays of an exchange have the same number of slots.
  subroutine exchange_add_slot(this, array)
    class(halo_exchange), intent(inout) :: this
    type(*), dimension(..), intent(inout), target :: array
    type(c_ptr) :: first
    integer :: n
    n = 0
    if (allocated(this%arrays)) n = size(this%arrays)
    if (n == 0) then
      if (this%problem == '') this%problem = 'add_slot() was called before add(); name an array''s first buffer by add()'
      return
    end if
    call describe_alike(array, this%arrays(n), first, this%problem)
    call append_slot(this%arrays(n), first, this%problem, this%problem_status)
  end subroutine

  !> Describes the layout in memory of an array with the dimensions, halo and centring of `one`.
  !! @param first  out: address of the first owned point. @param problem  set where it is '' and a fault was found.
  subroutine describe(array, one, first, problem)
    type(*), dimension(..), intent(in), target :: array
    type(added), intent(inout) :: one
    type(c_ptr), intent(out) :: first
    character(*), intent(inout) :: problem
    character(kind=c_char) :: text(longest_text), type(longest_type)
    call hs_fortran_type(array, type, int(longest_type, c_int32_t))
    call copy_letters(type, one%type)
    first = c_null_ptr
    if (hs_fortran_field(array, one%dims, one%room_low, one%field%centring, first, one%field, one%extent, text, &
                         int(longest_text, c_int32_t)) /= ok .and. problem == '') call copy_letters(text, problem)
    one%on_host = hs_fortran_is_on_host(array) /= 0
  end subroutine

  !> The same for an array that replaces `one`, or takes turns with it.
  subroutine describe_alike(array, one, first, problem)
    type(*), dimension(..), intent(in), target :: array
    type(added), intent(in) :: one
    type(c_ptr), intent(out) :: first
    character(*), intent(inout) :: problem
    type(added) :: other
    other%field = one%field
    other%dims = one%dims
    other%room_low = one%room_low
    call describe(array, other, first, problem)
    if (problem /= '') return
    if (other%type /= one%type) then
      problem = 'an array of type '//trim(other%type)//' takes turns with one of type '//trim(one%type)// &
                ' or replaces it; pass one of the same type'
    else if (any(other%extent /= one%extent) .or. any(other%field%stride /= one%field%stride) .or. &
             other%field%element_bytes /= one%field%element_bytes) then
      problem = 'an array differs in shape or the distances between its points from the one that it takes turns '// &
                'with or replaces; pass one of the same layout'
    end if
  end subroutine

  !> Opens the exchange of the arrays that were added, in place of one that is open. Collective; makes all plans.
  !! @param strategy  as "ordered/p2p"; default "auto", which tries them while it runs.
  !! @param corners   also fill edges and corners; default true.
  !! @param guard     track and poison stale halos, see changed(); default false. HALOSCOPE_GUARD=1 or 0 overrides it.
  !! Where ranks have several blocks, the arrays of the first block were added first, then the same ones of the next.
  !! Halos may be wider than blocks. Fails for arrays that do not fit the grid, and for an unknown strategy.
  subroutine exchange_open(this, grid, strategy, corners, stat, errmsg, guard)
    class(halo_exchange), intent(inout) :: this
    class(halo_grid), intent(in) :: grid
    character(*), intent(in), optional :: strategy
    class(*), intent(in), optional :: corners, guard
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    character(kind=c_char), target :: name(longest_text + 1)
    character(longest_text) :: problem
    type(hs_exchange_options) :: options
    type(hs_field), allocatable :: fields(:)
    type(c_ptr), allocatable, target :: first(:, :)
    integer(c_int32_t) :: status
    if (allocated(this%arrays)) call find_freed(this)
    call let_go(this, status, problem)
    if (this%problem == '') this%problem = problem
    call hs_exchange_init_sized(options, c_sizeof(options))
    call take_flag(corners, 'corners', options%corners, this%problem)
    call take_flag(guard, 'guard', options%guard, this%problem)
    if (present(strategy)) then
      call take_text(strategy, 'strategy', name, this%problem)
      options%strategy = c_loc(name)
    end if
    if (allocated(this%arrays)) call check_arrays(this, grid)
    call list_fields(this, options%slots, fields, first)
    if (status == ok .and. this%problem /= '') status = this%problem_status
    status = hs_grid_agree(grid%handle, status, c_text(this%problem))
    if (status == ok) &
      status = hs_exchange_create(grid%handle, fields, size(fields, kind=c_int32_t), options, this%handle)
    if (status == ok) call bind_arrays(this, options%slots)
    call forget_added(this)
    call conclude(status, stat, errmsg)
  end subroutine

  !> Finds an array whose memory has been freed since it was added, before anything else takes that memory.
  subroutine find_freed(this)
    type(halo_exchange), intent(inout) :: this
    integer :: n, slot
    do n = 1, size(this%arrays)
      do slot = 1, size(this%arrays(n)%first)
        if (this%problem == '') this%problem = freed(this%arrays(n), this%arrays(n)%first(slot), n)
      end do
    end do
  end subroutine

  !> Returns the fault where an array's memory has been freed; '' where it has not.
  !! @param first  its first owned point. @param number  of the array, from 1.
  function freed(array, first, number) result(problem)
    type(added), intent(in) :: array
    type(c_ptr), intent(in) :: first
    integer, intent(in) :: number
    character(longest_text) :: problem
    problem = ''
    if (.not. array%on_host) return
    if (hs_fortran_is_freed(array%field, array%room_low, array%extent, first) /= 0) &
      write (problem, '(a, i0, a)') 'array ', number, ' is no longer where it was: its memory has been freed. Compilers '// &
        'pass a copy of members of derived types, of parts of complex numbers, of substrings and of pointers to such; '// &
        'name the whole array, or a separate array'
  end function

  !> Lists the arrays that were added, and the addresses of their slots, for the library. Local.
  subroutine list_fields(this, slots, fields, first)
    type(halo_exchange), intent(inout) :: this
    integer(c_int32_t), intent(inout) :: slots
    type(hs_field), allocatable, intent(out) :: fields(:)
    type(c_ptr), allocatable, target, intent(out) :: first(:, :)
    integer :: n, slot, count, lacking
    if (this%problem /= '') return
    count = 0
    if (allocated(this%arrays)) count = size(this%arrays)
    if (count > 0) slots = size(this%arrays(1)%first, kind=c_int32_t)
    allocate (fields(count), first(slots, count), stat=lacking)
    if (lacking /= 0) then
      call note_exhausted('the list of fields', count*(storage_size(fields, c_int64_t)/8 + slots*c_sizeof(c_null_ptr)), &
                          this%problem, this%problem_status)
      return
    end if
    do n = 1, count
      do slot = 1, slots
        first(slot, n) = this%arrays(n)%first(slot)
      end do
      fields(n) = this%arrays(n)%field
      fields(n)%first = c_loc(first(1, n))
    end do
  end subroutine

  !> Binds the arrays that were added to the exchange. Only the library stores their addresses, since copies of this
  !! variable may rebind them.
  subroutine bind_arrays(this, slots)
    type(halo_exchange), intent(inout) :: this
    integer(c_int32_t), intent(in) :: slots
    integer :: n
    do n = 1, size(this%arrays)
      deallocate (this%arrays(n)%first)
    end do
    this%slots = slots
    call move_alloc(this%arrays, this%bound)
  end subroutine

  !> Finds an array with another number of slots than the first, or of another size than its rank's points and its halo.
  subroutine check_arrays(this, grid)
    type(halo_exchange), intent(inout) :: this
    class(halo_grid), intent(in) :: grid
    type(hs_box) :: block
    integer :: n, d, blocks
    blocks = max(1, grid%blocks())
    this%each = size(this%arrays)/blocks
    if (this%problem == '' .and. mod(size(this%arrays), blocks) /= 0) write (this%problem, '(2(a, i0), a)') &
      'an exchange got ', size(this%arrays), ' arrays for ', blocks, ' blocks of this rank; add the arrays of the '// &
      'first block, then the same ones of the next'
    if (this%problem == '' .and. size(this%arrays) > 0 .and. this%dims /= grid%dims) &
      write (this%problem, '(3(a, i0))') 'arrays of ', this%dims, ' dimensions were added to an exchange on a grid of ', &
        grid%dims, '; pass the number of the grid''s axes, which are the last ones, to add(): dims=', grid%dims
    do n = 1, size(this%arrays)
      associate (one => this%arrays(n))
        if (this%problem == '' .and. size(one%first) /= size(this%arrays(1)%first)) &
          write (this%problem, '(4(a, i0), a)') 'array ', n, ' has ', size(one%first), ' slots and array ', 1, ' has ', &
            size(this%arrays(1)%first), '; name as many buffers of each, by add() and add_slot()'
        if (grid%dims > 0) block = block_of(grid, min(blocks, 1 + (n - 1)/max(1, this%each)))
        call infer_centring(one, grid, block)
        do d = 1, grid%dims
          call check_extent(one, block, d, n, this%problem)
        end do
      end associate
    end do
  end subroutine

  !> Finds an array of another size than its rank's points and its halo in a dimension. @param number  of the array.
  subroutine check_extent(one, block, d, number, problem)
    type(added), intent(in) :: one
    type(hs_box), intent(in) :: block
    integer, intent(in) :: d, number
    character(*), intent(inout) :: problem
    integer(c_int64_t) :: points, wanted
    points = block%hi(d) - block%lo(d) + between(one%field%centring, d)
    wanted = points + one%room_low(d) + one%room_high(d)
    if (problem /= '' .or. one%extent(d) == wanted) return
    write (problem, '(6(a, i0), a)') 'array ', number, ' has ', one%extent(d), ' points in dimension ', d, '; ', &
      wanted, ' are this rank''s ', points, ' and its halo of ', one%room_low(d), &
      ' and more; allocate it by grid%shape() and its halo, or pass its layers as room='
  end subroutine

  !> Dimensions for which arrays of three have an element.
  pure integer function counted(dims)
    integer(c_int32_t), intent(in) :: dims
    counted = max(0, min(3, dims))
  end function

  !> 1 where points of this centring lie between the cells of a dimension.
  pure integer function between(centring, d)
    integer(c_int32_t), intent(in) :: centring
    integer, intent(in) :: d
    between = merge(1, 0, centring == halo_node .or. centring == halo_face_1 + d - 1)
  end function

  !> Sends everything that can be sent. The outermost points of the arrays must not change before finish().
  !! @param slot    buffer whose halos are filled, from 1; default 1.
  !! @param stream  arrays on a device: packing comes after the work that this cudaStream_t or hipStream_t already has;
  !!                default: the driver's default stream.
  !! @param only    numbers of the arrays to exchange, in the order of add(), from 1; default: all.
  !! @param depth   layers on every side that the exchange fills, at most as many as add() names, the default.
  !! @param low     layers on the low side of each dimension; default: depth. @param high  the same on the high side.
  !! @param ghost_rows  messages also carry the ghost layers of dimensions in which the call fills none, as where the
  !!                caller has computed them; default .false.
  !! The first call with other arrays, layers or sides is collective, like open(); links are used again later.
  subroutine exchange_start(this, slot, stat, errmsg, stream, only, depth, low, high, ghost_rows)
    class(halo_exchange), intent(inout) :: this
    class(*), intent(in), optional :: slot, only(:), depth, low(:), high(:), ghost_rows
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    type(c_ptr), intent(in), optional :: stream
    call run_part(this, hs_exchange_start_part, hs_exchange_start_part_on, slot, stat, errmsg, stream, &
                  only, depth, low, high, ghost_rows)
  end subroutine

  !> Advances messages. True when everything has arrived, and where the call has failed, so that loops end. Does not
  !! wait; but with reference, neighbor:blocking, rma-fence, rma-pscw:get and shared:fence, which complete only in a
  !! call of MPI that waits, the 1000th call of an exchange makes that call.
  logical function exchange_progress(this, stat, errmsg) result(done)
    class(halo_exchange), intent(inout) :: this
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    done = is_done(hs_exchange_progress, this%handle, stat, errmsg)
  end function

  logical function is_done(progress, handle, stat, errmsg) result(done)
    procedure(call_on_progress) :: progress
    type(c_ptr), intent(in) :: handle
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    integer(c_int32_t) :: status, all
    status = progress(handle, all)
    done = .true.
    if (status == ok) done = all /= 0
    call conclude(status, stat, errmsg)
  end function

  !> Waits until all halos are filled.
  !! @param stream  arrays on a device: the host does not wait for it, but work that is enqueued on this stream later
  !!                finds the halos filled.
  subroutine exchange_finish(this, stat, errmsg, stream)
    class(halo_exchange), intent(inout) :: this
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    type(c_ptr), intent(in), optional :: stream
    if (present(stream)) then
      call conclude(hs_exchange_finish_on(this%handle, stream), stat, errmsg)
    else
      call conclude(hs_exchange_finish(this%handle), stat, errmsg)
    end if
  end subroutine

  !> Runs start() and finish().
  !! @param slot    buffer whose halos are filled, from 1; default 1.
  !! @param stream  arrays on a device: see start() and finish().
  !! @param only, depth, low, high, ghost_rows  see start().
  subroutine exchange_run(this, slot, stat, errmsg, stream, only, depth, low, high, ghost_rows)
    class(halo_exchange), intent(inout) :: this
    class(*), intent(in), optional :: slot, only(:), depth, low(:), high(:), ghost_rows
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    type(c_ptr), intent(in), optional :: stream
    call run_part(this, hs_exchange_run_part, hs_exchange_run_part_on, slot, stat, errmsg, stream, &
                  only, depth, low, high, ghost_rows)
  end subroutine

  !> Binds another address of one array: for codes that swap pointers or allocate anew.
  !! @param array   equal in type, shape and the distances between its points; it has the attribute TARGET.
  !! @param number  of the array, in the order of add(), from 1; default 1. @param slot  buffer of it, from 1;
  !!                default 1.
  !! Local, and plans stay; strategies whose neighbours store the addresses (shared but for shared:packed, one-sided
  !! ones, neighbor, partitioned) are opened again, which is collective. Fails while an exchange is in flight, and for
  !! an array that differs.
  subroutine exchange_rebind(this, array, number, slot, stat, errmsg)
    class(halo_exchange), intent(inout) :: this
    type(*), dimension(..), intent(inout), target :: array
    class(*), intent(in), optional :: number, slot
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    character(longest_text) :: problem
    type(c_ptr), allocatable :: first(:)
    integer(c_int32_t) :: which, place, status
    if (.not. found_slot(this, slot, place, stat, errmsg, call_rebind)) return
    problem = ''
    which = 1
    call take(number, 'number', which, problem)
    call get_addresses(this, place, first, problem, status)
    call replace_address(this, int(which), array, first, problem)
    call move_slot(this, hs_exchange_rebind, call_rebind, place, first, problem, status)
    call conclude(status, stat, errmsg)
  end subroutine

  !> Exchanges other arrays by the plans of this exchange: rebind() where they lie elsewhere than in the last call, then
  !! run().
  !! @param array1, array2, ...  in the order of add(); arrays that are left out stay. For rules and cost see rebind().
  !! @param slot  buffer that they become, from 1; default 1.
  subroutine exchange_run_at(this, array1, array2, array3, array4, array5, array6, array7, array8, slot, stat, errmsg)
    class(halo_exchange), intent(inout) :: this
    type(*), dimension(..), intent(inout), target :: array1
    type(*), dimension(..), intent(inout), target, optional :: array2, array3, array4, array5, array6, array7, array8
    class(*), intent(in), optional :: slot
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    character(longest_text) :: problem
    type(c_ptr), allocatable :: first(:)
    integer(c_int32_t) :: place, status
    if (.not. found_slot(this, slot, place, stat, errmsg, call_run_at)) return
    problem = ''
    call get_addresses(this, place, first, problem, status)
    call replace_address(this, 1, array1, first, problem)
    if (present(array2)) call replace_address(this, 2, array2, first, problem)
    if (present(array3)) call replace_address(this, 3, array3, first, problem)
    if (present(array4)) call replace_address(this, 4, array4, first, problem)
    if (present(array5)) call replace_address(this, 5, array5, first, problem)
    if (present(array6)) call replace_address(this, 6, array6, first, problem)
    if (present(array7)) call replace_address(this, 7, array7, first, problem)
    if (present(array8)) call replace_address(this, 8, array8, first, problem)
    call move_slot(this, hs_exchange_run_at, call_run_at, place, first, problem, status)
    call conclude(status, stat, errmsg)
  end subroutine

  !> Returns the addresses of the arrays of a slot.
  !! @param place   the slot in C, from 0. @param problem  set where it is '' and they cannot be returned.
  !! @param status  out: the kind of such a problem.
  subroutine get_addresses(this, place, first, problem, status)
    class(halo_exchange), intent(in) :: this
    integer(c_int32_t), intent(in) :: place
    type(c_ptr), allocatable, intent(out) :: first(:)
    character(*), intent(inout) :: problem
    integer(c_int32_t), intent(out) :: status
    integer :: lacking
    status = usage
    allocate (first(size(this%bound)), stat=lacking)
    if (lacking /= 0) then
      call note_exhausted('addresses of arrays', size(this%bound)*c_sizeof(c_null_ptr), problem, status)
    else if (problem == '' .and. hs_exchange_first(this%handle, place, first) /= ok) then
      call copy_text(hs_last_error(), problem)
    end if
  end subroutine

  !> Replaces the address of an array, from 1, by that of another one of the same layout.
  subroutine replace_address(this, number, array, first, problem)
    class(halo_exchange), intent(in) :: this
    integer, intent(in) :: number
    type(*), dimension(..), intent(in), target :: array
    type(c_ptr), intent(inout) :: first(:)
    character(*), intent(inout) :: problem
    if (problem /= '') return
    if (number < 1 .or. number > size(this%bound)) then
      write (problem, '(2(a, i0))') 'no array ', number, ' exists; arrays are numbered as they were added, from 1 to ', &
        size(this%bound)
    else
      call describe_alike(array, this%bound(number), first(number), problem)
    end if
  end subroutine

  !> Makes a call that moves a slot to other addresses.
  !! @param call     that it is, for other ranks that wait in it.
  !! @param problem  the reason why it cannot; '': none. @param status  in: the kind of the problem. out: the outcome.
  subroutine move_slot(this, move, call, place, first, problem, status)
    class(halo_exchange), intent(inout) :: this
    procedure(call_on_addresses) :: move
    integer(c_int32_t), intent(in) :: call, place
    type(c_ptr), intent(in) :: first(:)
    character(*), intent(inout) :: problem
    integer(c_int32_t), intent(inout) :: status
    type(c_ptr), allocatable :: before(:)
    integer :: n
    if (problem == '') call get_addresses(this, place, before, problem, status)
    if (problem /= '') then
      status = hs_exchange_refuse(this%handle, call, status, c_text(problem))
      return
    end if
    status = move(this%handle, place, first)
    if (status /= ok) return
    do n = 1, size(first)
      if (c_associated(first(n), before(n))) cycle
      this%bound(n)%moved = .not. any_is(this%bound(n)%alive, first(n))
      this%bound(n)%moved_to = first(n)
    end do
  end subroutine

  !> Makes a call on a slot, or the call `on` on a slot and a stream, where one is passed. Other arguments: see
  !! found_slot().
  subroutine run_on_slot(this, plain, on, slot, stat, errmsg, stream, call)
    class(halo_exchange), intent(inout) :: this
    procedure(call_on_slot) :: plain
    procedure(call_on_stream) :: on
    class(*), intent(in), optional :: slot
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    type(c_ptr), intent(in), optional :: stream
    integer(c_int32_t), intent(in), optional :: call
    integer(c_int32_t) :: number
    if (.not. found_slot(this, slot, number, stat, errmsg, call)) return
    if (present(stream)) then
      call conclude(on(this%handle, number, stream), stat, errmsg)
    else
      call conclude(plain(this%handle, number), stat, errmsg)
    end if
  end subroutine

  !> Makes a call on a slot and a part of the exchange, or the call `on` on a stream too, where one is passed. Other
  !! arguments: see found_slot() and take_part().
  subroutine run_part(this, plain, on, slot, stat, errmsg, stream, only, depth, low, high, ghost_rows, call)
    class(halo_exchange), intent(inout) :: this
    procedure(call_on_part) :: plain
    procedure(call_on_part_and_stream) :: on
    class(*), intent(in), optional :: slot, only(:), depth, low(:), high(:), ghost_rows
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    type(c_ptr), intent(in), optional :: stream
    integer(c_int32_t), intent(in), optional :: call
    integer(c_int32_t), allocatable, target :: numbers(:)
    type(hs_part), target :: part
    type(c_ptr) :: chosen
    character(longest_text) :: problem
    integer(c_int32_t) :: number, status
    if (.not. found_slot(this, slot, number, stat, errmsg, call)) return
    chosen = c_null_ptr
    if (present(only) .or. present(depth) .or. present(low) .or. present(high) .or. present(ghost_rows)) then
      problem = ''
      call take_part(this, part, numbers, problem, status, only, depth, low, high, ghost_rows)
      if (problem /= '') then
        call conclude(status, stat, errmsg, problem)
        return
      end if
      if (present(only)) part%only = c_loc(numbers)
      chosen = c_loc(part)
    end if
    if (present(stream)) then
      call conclude(on(this%handle, chosen, number, stream), stat, errmsg)
    else
      call conclude(plain(this%handle, chosen, number), stat, errmsg)
    end if
  end subroutine

  !> Takes a part of an open exchange.
  !! @param part     out, without the address of the numbers. @param numbers  out: `only` in C, from 0.
  !! @param only     numbers of the arrays, in the order of add(), from 1; default: all.
  !! @param status   out: the kind of a problem.
  !! @param depth    layers on every side that the exchange fills; default: all of its layers.
  !! @param low      layers on the low side of each dimension; default: depth. @param high  the same on the high side.
  subroutine take_part(this, part, numbers, problem, status, only, depth, low, high, ghost_rows)
    class(halo_exchange), intent(in) :: this
    type(hs_part), intent(out) :: part
    integer(c_int32_t), allocatable, intent(out) :: numbers(:)
    character(*), intent(inout) :: problem
    integer(c_int32_t), intent(out) :: status
    class(*), intent(in), optional :: only(:), depth, low(:), high(:), ghost_rows
    integer(c_int32_t) :: layers
    status = usage
    call hs_part_init_sized(part, c_sizeof(part))
    if (present(only)) call take_only(this, only, numbers, problem, status)
    if (present(only)) part%count = size(only)
    layers = 0
    call take(depth, 'depth', layers, problem)
    if (present(depth)) part%depth = layers
    call take_layers(low, 'low', part%low(:this%bound(1)%dims), problem)
    call take_layers(high, 'high', part%high(:this%bound(1)%dims), problem)
    call take_flag(ghost_rows, 'ghost_rows', part%ghost_rows, problem)
    if (problem == '' .and. layers < 0) problem = "argument 'depth' is negative; pass 0 or more layers"
  end subroutine

  !> Takes the numbers of some arrays, and converts them to numbers of C, from 0. @param status  set with a problem.
  subroutine take_only(this, only, numbers, problem, status)
    class(halo_exchange), intent(in) :: this
    class(*), intent(in) :: only(:)
    integer(c_int32_t), allocatable, intent(out) :: numbers(:)
    character(*), intent(inout) :: problem
    integer(c_int32_t), intent(inout) :: status
    integer :: n, lacking
    allocate (numbers(size(only)), stat=lacking)
    if (lacking /= 0) call note_exhausted('numbers of arrays', size(only)*4_c_int64_t, problem, status)
    if (problem == '' .and. size(only) == 0) &
      problem = "argument 'only' names no array; pass numbers of arrays, or omit it for all arrays"
    if (problem == '') call take(only, 'only', numbers, problem)
    do n = 1, size(only)
      if (problem == '' .and. (numbers(n) < 1 .or. numbers(n) > this%each)) &
        write (problem, '(2(a, i0))') "argument 'only' names array ", numbers(n), &
        '; arrays are numbered in the order of add(), from 1 to ', this%each
      if (problem == '' .and. any(numbers(:n - 1) == numbers(n))) &
        write (problem, '(a, i0, a)') "argument 'only' names array ", numbers(n), ' twice; name it once'
    end do
    if (problem == '') numbers = numbers - 1
  end subroutine

  !> Takes layers by dimension.
  subroutine take_layers(passed, name, layers, problem)
    class(*), intent(in), optional :: passed(:)
    character(*), intent(in) :: name
    integer(c_int32_t), intent(inout) :: layers(:)
    character(*), intent(inout) :: problem
    if (.not. present(passed)) return
    call take(passed, name, layers, problem)
    if (problem == '' .and. any(layers < 0)) problem = "argument '"//name//"' is negative; pass 0 or more layers"
  end subroutine

  !> True if the exchange is open and has a slot; if not, the request is refused.
  !! @param slot  from 1; default 1. @param number  out: the same in C, from 0.
  !! @param call  that may be collective: the other ranks' calls fail then, too.
  logical function found_slot(this, slot, number, stat, errmsg, call) result(found)
    class(halo_exchange), intent(inout) :: this
    class(*), intent(in), optional :: slot
    integer(c_int32_t), intent(out) :: number
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    integer(c_int32_t), intent(in), optional :: call
    character(longest_text) :: problem
    problem = ''
    number = 1
    if (c_associated(this%handle) .and. all(call_of(call) /= [call_rebind, call_run_at])) call find_moved(this, problem)
    if (problem /= '') then
      continue
    else if (c_associated(this%handle)) then
      call take(slot, 'slot', number, problem)
      if (problem == '' .and. (number < 1 .or. number > this%slots)) &
        write (problem, '(2(a, i0))') 'no slot ', number, ' exists; slots are numbered from 1 to ', this%slots
    else
      problem = 'the exchange is not open; name its arrays by add(), then call open()'
    end if
    number = number - 1
    found = problem == ''
    if (found) return
    if (present(call) .and. c_associated(this%handle)) then
      call conclude(hs_exchange_refuse(this%handle, call, usage, c_text(problem)), stat, errmsg)
    else
      call refuse(problem, stat, errmsg)
    end if
  end function

  !> The call that may be collective; -1 where none is named.
  pure integer(c_int32_t) function call_of(call)
    integer(c_int32_t), intent(in), optional :: call
    call_of = -1
    if (present(call)) call_of = call
  end function

  !> Finds an array whose memory has been freed since rebind(). Buffers that take turns are checked once.
  subroutine find_moved(this, problem)
    class(halo_exchange), intent(inout) :: this
    character(*), intent(inout) :: problem
    integer :: n
    do n = 1, size(this%bound)
      associate (one => this%bound(n))
        if (.not. one%moved .or. problem /= '') cycle
        problem = freed(one, one%moved_to, n)
        if (problem /= '') cycle
        one%moved = .false.
        one%alive = [one%moved_to, one%alive(1)]
      end associate
    end do
  end subroutine

  pure logical function any_is(places, place)
    type(c_ptr), intent(in) :: places(:), place
    integer :: n
    any_is = .false.
    do n = 1, size(places)
      any_is = any_is .or. c_associated(places(n), place)
    end do
  end function

  !> The transpose of start(): adds the values in the halos to the points that own them, and clears the halos. The
  !! boundary and the halos must not be accessed before finish(). Nodes and faces that several ranks hold then get the
  !! sum of all holders.
  !! Fails for arrays that are not of type integer, real(4), real(8) or complex of these. The first call is collective
  !! and opens another link; cost: the messages of an exchange, and one pass over the arriving values.
  !! @param slot    buffer whose halos are added, from 1; default 1.
  !! @param stream  arrays on a device: see start().
  !! @param only, depth, low, high, ghost_rows  see start(); other halos stay as they are.
  subroutine exchange_start_accumulate(this, slot, stat, errmsg, stream, only, depth, low, high, ghost_rows)
    class(halo_exchange), intent(inout) :: this
    class(*), intent(in), optional :: slot, only(:), depth, low(:), high(:), ghost_rows
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    type(c_ptr), intent(in), optional :: stream
    call run_part(this, hs_exchange_start_accumulate_part, hs_exchange_start_accumulate_part_on, slot, stat, errmsg, stream, &
                  only, depth, low, high, ghost_rows, call_accumulate)
  end subroutine

  !> Runs start_accumulate() and finish().
  !! @param slot    buffer whose halos are added, from 1; default 1.
  !! @param stream  arrays on a device: see start() and finish().
  !! @param only, depth, low, high, ghost_rows  see start_accumulate().
  subroutine exchange_accumulate(this, slot, stat, errmsg, stream, only, depth, low, high, ghost_rows)
    class(halo_exchange), intent(inout) :: this
    class(*), intent(in), optional :: slot, only(:), depth, low(:), high(:), ghost_rows
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    type(c_ptr), intent(in), optional :: stream
    call run_part(this, hs_exchange_accumulate_part, hs_exchange_accumulate_part_on, slot, stat, errmsg, stream, &
                  only, depth, low, high, ghost_rows, call_accumulate)
  end subroutine

  !> Starts to copy each point that several ranks hold (nodes and faces between blocks) from its owner to the other
  !! holders; both ends of a periodic dimension count. The owner is the rank whose cell begins at the point, in each
  !! dimension; where the grid ends there, or has a hole, the next block around the point. Halos keep their contents.
  !! The first call is collective; cost: a message to each rank that holds points of this rank's.
  !! @param slot    buffer whose points are copied, from 1; default 1.
  !! @param stream  arrays on a device: see start(). @param only  numbers of the arrays, see start().
  subroutine exchange_start_share(this, slot, stat, errmsg, stream, only)
    class(halo_exchange), intent(inout) :: this
    class(*), intent(in), optional :: slot, only(:)
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    type(c_ptr), intent(in), optional :: stream
    call run_part(this, hs_exchange_start_share, hs_exchange_start_share_on, slot, stat, errmsg, stream, only, &
                  call=call_share)
  end subroutine

  !> Runs start_share() and finish().
  !! @param slot, stream, only  see start_share().
  subroutine exchange_share(this, slot, stat, errmsg, stream, only)
    class(halo_exchange), intent(inout) :: this
    class(*), intent(in), optional :: slot, only(:)
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    type(c_ptr), intent(in), optional :: stream
    call run_part(this, hs_exchange_share, hs_exchange_share_on, slot, stat, errmsg, stream, only, call=call_share)
  end subroutine

  !> Records that the own points have changed: halos are stale and, in a guarded exchange, poisoned. Local.
  !! @param fresh   layers that stay fresh, since they have been computed too; default 0.
  !! @param stream  arrays on a device: after the work that it already has; the poison comes before its later work.
  !! @param slot    buffer whose points have changed, from 1; default 1.
  subroutine exchange_changed(this, fresh, stat, errmsg, stream, slot)
    class(halo_exchange), intent(inout) :: this
    class(*), intent(in), optional :: fresh, slot
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    type(c_ptr), intent(in), optional :: stream
    character(longest_text) :: problem
    integer(c_int32_t) :: layers, number
    if (.not. found_slot(this, slot, number, stat, errmsg)) return
    problem = ''
    layers = 0
    call take(fresh, 'fresh', layers, problem)
    if (problem /= '') then
      call refuse(problem, stat, errmsg)
    else if (present(stream)) then
      call conclude(hs_exchange_changed_on(this%handle, number, layers, stream), stat, errmsg)
    else
      call conclude(hs_exchange_changed(this%handle, number, layers), stat, errmsg)
    end if
  end subroutine

  !> Requires fresh halos, which are read `depth` layers deep from here on: fails in a guarded exchange where fewer are
  !! fresh, and names the array, the side and the last exchange. Local.
  !! @param slot  buffer whose halos are read, from 1; default 1.
  subroutine exchange_require_fresh(this, depth, stat, errmsg, slot)
    class(halo_exchange), intent(inout) :: this
    class(*), intent(in) :: depth
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    class(*), intent(in), optional :: slot
    character(longest_text) :: problem
    integer(c_int32_t) :: layers, number
    if (.not. found_slot(this, slot, number, stat, errmsg)) return
    problem = ''
    call take(depth, 'depth', layers, problem)
    if (problem /= '') then
      call refuse(problem, stat, errmsg)
    else
      call conclude(hs_exchange_require_fresh(this%handle, layers, number), stat, errmsg)
    end if
  end subroutine

  !> Searches the own points of a guarded exchange for poison: fails where a stale halo was read, and names the first
  !! such point and its slot, counted from 0, and the side that the poison came from. Collective.
  !! @param stream  arrays on a device: after the work that it already has.
  !! @param slot    buffer whose points are searched, from 1; default 1.
  subroutine exchange_check_clean(this, stat, errmsg, stream, slot)
    class(halo_exchange), intent(inout) :: this
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    type(c_ptr), intent(in), optional :: stream
    class(*), intent(in), optional :: slot
    call run_on_slot(this, hs_exchange_check_clean, hs_exchange_check_clean_on, slot, stat, errmsg, stream, call_check_clean)
  end subroutine

  !> One line with the strategy that moves the halos, the messages of this rank and the choices of auto; '' where the
  !! call has failed.
  function exchange_report(this, stat, errmsg) result(text)
    class(halo_exchange), intent(in) :: this
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    character(:), allocatable :: text
    call take_report(hs_exchange_report, this%handle, text, stat, errmsg)
  end function

  !> Takes over a report. @param text  out: '' where the call has failed.
  subroutine take_report(report, handle, text, stat, errmsg)
    procedure(call_for_text) :: report
    type(c_ptr), intent(in) :: handle
    character(:), allocatable, intent(out) :: text
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    character(longest_text) :: problem
    type(c_ptr) :: found
    integer(c_int32_t) :: status
    integer :: lacking
    status = report(handle, found)
    problem = ''
    if (status /= ok) then
      call copy_text(hs_last_error(), problem)
    else
      allocate (character(strlen(found)) :: text, stat=lacking)
      if (lacking == 0) call copy_text(found, text)
      if (lacking /= 0) call note_exhausted('a report', int(strlen(found), c_int64_t), problem, status)
    end if
    if (status /= ok) allocate (character(0) :: text, stat=lacking)
    call conclude(status, stat, errmsg, problem)
  end subroutine

  !> Frees the resources of the exchange. Collective: ranks may wait for each other, and free exchanges in the same
  !! order.
  !! Fails for an exchange that was freed by a copy of this variable, and forgets it.
  subroutine exchange_free(this, stat, errmsg)
    class(halo_exchange), intent(inout) :: this
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    character(longest_text) :: problem
    integer(c_int32_t) :: status
    call let_go(this, status, problem)
    if (status == ok) then  ! arrays that were added and not opened are forgotten, too
      call forget_added(this)
    end if
    call conclude(status, stat, errmsg, problem)
  end subroutine

  !> Frees an exchange. One that still exists, as after a call on a wrong thread, stays.
  !! @param problem  out: the reason of a failure; '' without one.
  subroutine let_go(this, status, problem)
    class(halo_exchange), intent(inout) :: this
    integer(c_int32_t), intent(out) :: status
    character(*), intent(out) :: problem
    problem = ''
    status = hs_exchange_free(this%handle)
    if (status /= ok) then
      call copy_text(hs_last_error(), problem)
      if (is_there(this)) return
    end if
    this%handle = c_null_ptr
    if (allocated(this%bound)) deallocate (this%bound)
  end subroutine

  !> Adds an array and the array that it moves to, before open(). Local.
  !! @param source       an array of the first grid, as for add() of an exchange. @param target  the same of the second.
  !! @param halo         ghost layers that the arrays have on every side; default 1. @param target_halo  of the target,
  !!                     where it has others.
  !! @param centring     as for add() of an exchange. @param dims  of the grid; default: the rank of
  !!                     the array.
  subroutine redistribution_add(this, source, target, halo, target_halo, centring, dims)
    class(halo_redistribution), intent(inout) :: this
    type(*), dimension(..), intent(inout), target :: source, target
    class(*), intent(in), optional :: halo, target_halo, centring, dims
    call this%sources%add(source, halo=halo, centring=centring, dims=dims)
    if (present(target_halo)) then
      call this%targets%add(target, halo=target_halo, centring=centring, dims=dims)
    else
      call this%targets%add(target, halo=halo, centring=centring, dims=dims)
    end if
  end subroutine

  !> Adds an array of the first grid, before open(), where ranks have several blocks: the arrays of the first block, then
  !! the same ones of the next. Local. @param array, halo, centring, dims  see add().
  subroutine redistribution_add_source(this, array, halo, centring, dims)
    class(halo_redistribution), intent(inout) :: this
    type(*), dimension(..), intent(inout), target :: array
    class(*), intent(in), optional :: halo, centring, dims
    call this%sources%add(array, halo=halo, centring=centring, dims=dims)
  end subroutine

  !> Adds an array of the second grid; see add_source().
  subroutine redistribution_add_target(this, array, halo, centring, dims)
    class(halo_redistribution), intent(inout) :: this
    type(*), dimension(..), intent(inout), target :: array
    class(*), intent(in), optional :: halo, centring, dims
    call this%targets%add(array, halo=halo, centring=centring, dims=dims)
  end subroutine

  !> Opens the redistribution of the arrays that were added, in place of one that is open. Collective.
  !! @param from, to  grids of the same cells and periodic dimensions on one communicator.
  !! @param strategy  as for open() of an exchange; default "direct/p2p". Buffers are as large as the arrays, and "auto"
  !!                  holds buffers of several transports.
  !! Fails for grids that differ, and for arrays that do not fit their grid or each other.
  subroutine redistribution_open(this, from, to, strategy, stat, errmsg)
    class(halo_redistribution), intent(inout) :: this
    class(halo_grid), intent(in) :: from, to
    character(*), intent(in), optional :: strategy
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    character(kind=c_char), target :: name(longest_text + 1)
    type(hs_exchange_options) :: options
    type(hs_field), allocatable :: sources(:), targets(:)
    type(c_ptr), allocatable, target :: first(:, :), second(:, :)
    integer(c_int32_t) :: status
    call let_redistribution_go(this, status)
    if (status /= ok .and. this%sources%problem == '') call copy_text(hs_last_error(), this%sources%problem)
    call hs_exchange_init_sized(options, c_sizeof(options))
    if (present(strategy)) then
      call take_text(strategy, 'strategy', name, this%sources%problem)
      options%strategy = c_loc(name)
    end if
    call list_added(this%sources, from, options%slots, sources, first)
    call list_added(this%targets, to, options%slots, targets, second)
    if (this%sources%problem == '') then
      this%sources%problem = this%targets%problem
      this%sources%problem_status = this%targets%problem_status
    end if
    if (this%sources%problem == '' .and. this%sources%each /= this%targets%each) &
      write (this%sources%problem, '(2(a, i0), a)') 'a redistribution got ', this%sources%each, ' sources and ', &
        this%targets%each, ' targets for each block; add the same arrays for each block of both grids'
    status = ok
    if (this%sources%problem /= '') status = this%sources%problem_status
    status = hs_grid_agree(from%handle, status, c_text(this%sources%problem))
    if (status == ok) status = hs_redistribution_create(from%handle, to%handle, sources, targets, &
                                                        int(this%sources%each, c_int32_t), options, this%handle)
    call forget_added(this%sources)
    call forget_added(this%targets)
    call conclude(status, stat, errmsg)
  end subroutine

  !> Checks the arrays that were added for a grid, and lists them for the library. Local.
  subroutine list_added(this, grid, slots, fields, first)
    type(halo_exchange), intent(inout) :: this
    class(halo_grid), intent(in) :: grid
    integer(c_int32_t), intent(inout) :: slots
    type(hs_field), allocatable, intent(out) :: fields(:)
    type(c_ptr), allocatable, target, intent(out) :: first(:, :)
    this%each = 0
    if (allocated(this%arrays)) then
      call find_freed(this)
      call check_arrays(this, grid)
    end if
    call list_fields(this, slots, fields, first)
  end subroutine

  !> Forgets the arrays that were added. Local.
  subroutine forget_added(this)
    class(halo_exchange), intent(inout) :: this
    if (allocated(this%arrays)) deallocate (this%arrays)
    this%problem = ''
    this%problem_status = usage
    this%dims = 0
  end subroutine

  !> Sends everything. Owned points of the sources must not change, and targets must not be read, before
  !! finish().
  subroutine redistribution_start(this, stat, errmsg)
    class(halo_redistribution), intent(inout) :: this
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    call conclude(hs_redistribution_start(this%handle, 0_c_int32_t), stat, errmsg)
  end subroutine

  !> Advances messages, as progress() of an exchange.
  logical function redistribution_progress(this, stat, errmsg) result(done)
    class(halo_redistribution), intent(inout) :: this
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    done = is_done(hs_redistribution_progress, this%handle, stat, errmsg)
  end function

  !> Waits until all points have arrived.
  subroutine redistribution_finish(this, stat, errmsg)
    class(halo_redistribution), intent(inout) :: this
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    call conclude(hs_redistribution_finish(this%handle), stat, errmsg)
  end subroutine

  !> Runs start() and finish().
  subroutine redistribution_run(this, stat, errmsg)
    class(halo_redistribution), intent(inout) :: this
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    call conclude(hs_redistribution_run(this%handle, 0_c_int32_t), stat, errmsg)
  end subroutine

  !> One line with the strategy that moves the points and the messages of this rank; '' where the call has failed.
  function redistribution_report(this, stat, errmsg) result(text)
    class(halo_redistribution), intent(in) :: this
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    character(:), allocatable :: text
    call take_report(hs_redistribution_report, this%handle, text, stat, errmsg)
  end function

  !> Frees the redistribution, and forgets arrays that were added. Collective, as free() of an exchange.
  subroutine redistribution_free(this, stat, errmsg)
    class(halo_redistribution), intent(inout) :: this
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    integer(c_int32_t) :: status
    call let_redistribution_go(this, status)
    call forget_added(this%sources)
    call forget_added(this%targets)
    call conclude(status, stat, errmsg)
  end subroutine

  !> Frees the library's object. Collective.
  subroutine let_redistribution_go(this, status)
    class(halo_redistribution), intent(inout) :: this
    integer(c_int32_t), intent(out) :: status
    status = hs_redistribution_free(this%handle)
    this%handle = c_null_ptr
  end subroutine

  !> True if the exchange was not freed by a copy of this variable. Every exchange has a first slot. Where memory is
  !! exhausted it counts as existing.
  logical function is_there(this)
    class(halo_exchange), intent(in) :: this
    type(c_ptr), allocatable :: first(:)
    integer :: lacking
    allocate (first(size(this%bound)), stat=lacking)
    is_there = lacking /= 0
    if (.not. is_there) is_there = hs_exchange_first(this%handle, 0_c_int32_t, first) == ok
  end function

  !> Passes the library's failure to the caller, or ends the program.
  !! @param problem  its text, in place of the library's last failure.
  subroutine conclude(status, stat, errmsg, problem)
    integer(c_int32_t), intent(in) :: status
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    character(*), intent(in), optional :: problem
    call give(status, stat)
    if (status == ok) return
    if (present(errmsg)) call give_text(errmsg, problem)
    if (present(stat)) return
    if (present(problem)) call end_program(trim(problem))
    call end_program(text_at(hs_last_error()))
  end subroutine

  !> Sets a caller's text. @param problem  the text; default: the library's last failure.
  subroutine give_text(errmsg, problem)
    class(*), intent(inout) :: errmsg
    character(*), intent(in), optional :: problem
    select type (errmsg)
    type is (character(*))
      if (present(problem)) then
        errmsg = problem
      else
        call copy_text(hs_last_error(), errmsg)
      end if
    class default
      call end_program(other_type('errmsg', 'character'))
    end select
  end subroutine

  !> The same for a request that this module refuses itself.
  subroutine refuse(problem, stat, errmsg)
    character(*), intent(in) :: problem
    class(*), intent(out), optional :: stat
    class(*), intent(inout), optional :: errmsg
    call conclude(usage, stat, errmsg, problem)
  end subroutine

  subroutine give(status, stat)
    integer(c_int32_t), intent(in) :: status
    class(*), intent(out), optional :: stat
    if (.not. present(stat)) return
    select type (stat)
    type is (integer(c_int32_t))
      stat = status
    type is (integer(c_int64_t))
      stat = status
    class default
      call end_program(other_type('stat', 'integer'))
    end select
  end subroutine

  subroutine end_program(text)
    character(*), intent(in) :: text
    write (error_unit, '(2a)') 'haloscope: ', text
    error stop 2
  end subroutine

  !> Notes that memory of this module is exhausted.
  !! @param purpose  of the memory, as "the list of arrays". @param status  set where `problem` is ''.
  subroutine note_exhausted(purpose, bytes, problem, status)
    character(*), intent(in) :: purpose
    integer(c_int64_t), intent(in) :: bytes
    character(*), intent(inout) :: problem
    integer(c_int32_t), intent(inout) :: status
    character(kind=c_char) :: text(longest_text)
    if (problem /= '') return
    call hs_exhausted_memory(c_text(purpose), bytes, text, int(longest_text, c_int32_t))
    call copy_letters(text, problem)
    status = failed
  end subroutine

  !> Takes the number that a caller passes in place of a default, if one is passed.
  !! @param problem  set where it is '' and the argument is not an integer of 4 or 8 bytes, or too large.
  subroutine take_number(given, name, number, problem)
    class(*), intent(in), optional :: given
    character(*), intent(in) :: name
    integer(c_int32_t), intent(inout) :: number
    character(*), intent(inout) :: problem
    if (.not. present(given)) return
    call check_number(integer_of(given), name, int(huge(number), c_int64_t), problem)
    if (problem == '') number = int(integer_of(given), c_int32_t)
  end subroutine

  !> The same for an array of the size of `numbers`.
  subroutine take_numbers(given, name, numbers, problem)
    class(*), intent(in), optional :: given(:)
    character(*), intent(in) :: name
    integer(c_int32_t), intent(inout) :: numbers(:)
    character(*), intent(inout) :: problem
    integer(c_int64_t) :: passed
    integer :: n
    if (.not. present(given)) return
    call check_size(size(given), size(numbers), name, problem)
    do n = 1, min(size(given), size(numbers))
      passed = integer_of(given(n))
      call check_number(passed, name, int(huge(numbers), c_int64_t), problem)
      if (problem == '') numbers(n) = int(passed, c_int32_t)
    end do
  end subroutine

  subroutine take_long_numbers(given, name, numbers, problem)
    class(*), intent(in), optional :: given(:)
    character(*), intent(in) :: name
    integer(c_int64_t), intent(inout) :: numbers(:)
    character(*), intent(inout) :: problem
    integer :: n
    if (.not. present(given)) return
    call check_size(size(given), size(numbers), name, problem)
    do n = 1, min(size(given), size(numbers))
      numbers(n) = integer_of(given(n))
      call check_number(numbers(n), name, huge(numbers), problem)
    end do
  end subroutine

  pure subroutine check_size(passed, wanted, name, problem)
    integer, intent(in) :: passed, wanted
    character(*), intent(in) :: name
    character(*), intent(inout) :: problem
    if (problem == '' .and. passed /= wanted) &
      write (problem, '(3a, 2(i0, a))') "argument '", name, "' has ", passed, ' values where ', wanted, ' are needed'
  end subroutine

  pure subroutine check_number(number, name, largest, problem)
    integer(c_int64_t), intent(in) :: number, largest
    character(*), intent(in) :: name
    character(*), intent(inout) :: problem
    if (problem /= '') return
    if (number == no_integer) then
      problem = other_type(name, 'integer')
    else if (abs(number) > largest) then
      write (problem, '(3a, i0, a)') "argument '", name, "' is ", number, &
        ', which does not fit in 4 bytes; pass a smaller number'
    end if
  end subroutine

  !> Takes the logical that a caller passes, if one is passed, as 1 or 0.
  subroutine take_flag(given, name, flag, problem)
    class(*), intent(in), optional :: given
    character(*), intent(in) :: name
    integer(c_int32_t), intent(inout) :: flag
    character(*), intent(inout) :: problem
    if (.not. present(given)) return
    flag = flag_of(given)
    if (flag == no_flag .and. problem == '') problem = other_type(name, 'logical')
  end subroutine

  !> The same for an array of the size of `flags`.
  subroutine take_flags(given, name, flags, problem)
    class(*), intent(in), optional :: given(:)
    character(*), intent(in) :: name
    integer(c_int32_t), intent(inout) :: flags(:)
    character(*), intent(inout) :: problem
    integer :: n
    if (.not. present(given)) return
    call check_size(size(given), size(flags), name, problem)
    do n = 1, min(size(given), size(flags))
      flags(n) = flag_of(given(n))
    end do
    if (any(flags == no_flag) .and. problem == '') problem = other_type(name, 'logical')
  end subroutine

  pure integer(c_int64_t) function integer_of(given)
    class(*), intent(in) :: given
    select type (given)
    type is (integer(c_int32_t))
      integer_of = given
    type is (integer(c_int64_t))
      integer_of = given
    class default
      integer_of = no_integer
    end select
  end function

  pure integer(c_int32_t) function flag_of(given)
    class(*), intent(in) :: given
    select type (given)
    type is (logical(c_int32_t))
      flag_of = merge(1, 0, given)
    type is (logical(c_int64_t))
      flag_of = merge(1, 0, given)
    class default
      flag_of = no_flag
    end select
  end function

  pure function other_type(name, type) result(problem)
    character(*), intent(in) :: name, type
    character(:), allocatable :: problem
    problem = "argument '"//name//"' is not of type "//type//' with 4 or 8 bytes; pass one that is'
  end function

  function text_at(address) result(text)
    type(c_ptr), intent(in) :: address
    character(strlen(address)) :: text
    call copy_text(address, text)
  end function

  !> Copies a text; its beginning, where `text` is shorter.
  subroutine copy_text(address, text)
    type(c_ptr), intent(in) :: address
    character(*), intent(inout) :: text
    character(kind=c_char), pointer :: letters(:)
    call c_f_pointer(address, letters, [strlen(address)])
    call copy_letters(letters, text)
  end subroutine

  !> A text for the library. Of constant size, so that it needs no memory of the system's.
  pure function c_text(text) result(letters)
    character(*), intent(in) :: text
    character(kind=c_char) :: letters(longest_text + 1)
    integer :: i
    do i = 1, min(len_trim(text), longest_text)
      letters(i) = text(i:i)
    end do
    letters(i) = c_null_char
  end function

  !> Takes the text that a caller passes, as `letters` for the library.
  subroutine take_text(given, name, letters, problem)
    character(*), intent(in) :: given, name
    character(kind=c_char), intent(out) :: letters(:)
    character(*), intent(inout) :: problem
    letters = c_text(given)
    if (problem == '' .and. len_trim(given) > longest_text) &
      write (problem, '(3a, i0, a)') "argument '", name, "' is longer than ", longest_text, ' characters; pass a shorter one'
  end subroutine

  !> Copies the letters before the end of a text of C.
  subroutine copy_letters(letters, text)
    character(kind=c_char), intent(in) :: letters(:)
    character(*), intent(inout) :: text
    integer :: i
    text = ''
    do i = 1, min(size(letters), len(text))
      if (letters(i) == c_null_char) exit
      text(i:i) = letters(i)
    end do
  end subroutine

end module haloscope
