! The module in a model whose integers, logicals and reals are of the default kinds. It is compiled with
! and without -fdefault-integer-8 and -fdefault-real-8; every argument of every procedure is of the
! default kind at least once.
program default_kinds
  use, intrinsic :: iso_c_binding
  use haloscope
  implicit none

  interface
    include 'mpi_for_fortran.inc'
  end interface

  type :: communicator  ! as the one of mpi_f08
    integer :: mpi_val
  end type

  integer(c_int64_t), parameter :: large = 5000000000_c_int64_t
  integer, parameter :: cells(2) = [12, 10]
  type(halo_grid) :: grid
  type(halo_exchange) :: halo
  integer :: comm, cart, wrong = 0, refused
  character(300) :: text
  character(10) :: ending

  call begin_mpi()
  comm = world()
  call get_command_argument(1, ending)
  if (ending /= '') call end_by_mistake()
  cart = cartesian()
  call exchange_on_every_grid()
  call accumulate_and_check()
  call share_and_sum()
  call gather_on_one_rank()
  call guard_and_check()
  call pass_absent_arguments_on()
  call mix_kinds()
  call check_refusals_on_grids()
  call check_refusals_of_arrays()
  call check_refusals_of_steps()
  call grid%free(stat=refused)
  call expect(refused == 0, 'free of a grid')
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

  !> Mistakes that leave no place for an answer end the program.
  subroutine end_by_mistake()
    real :: status
    call grid%create(comm, [large*rank_count()])
    if (ending == 'shape') wrong = sum(grid%shape())
    if (ending == 'first') wrong = sum(grid%first())
    if (ending == 'stat') call grid%create(comm, cells, stat=status)
  end subroutine

  subroutine exchange_on_every_grid()
    integer :: status, n, nodes(rank_count()), axes(2), first(2), last(2), low(2, 1), high(2, 1), fold
    logical :: wrap(2), holes, reorder
    wrap = .true.
    holes = .false.
    reorder = .true.
    fold = 0
    axes = [2, 1]
    nodes = [(mod(n, 2), n=1, size(nodes))]
    call grid%create(comm, cells, periodic=wrap, stat=status, reorder=reorder, nodes=nodes, fold=fold)
    call expect(status == 0, 'create')
    call exchange_and_check('even')
    first = grid%first(mold=0)
    last = first + grid%shape(mold=0) - 1
    call grid%create_of_boxes(comm, cells, first, last, periodic=wrap, holes=holes, stat=status, fold=fold)
    call expect(status == 0, 'create_of_boxes')
    call exchange_and_check('boxes')
    low(:, 1) = first
    high(:, 1) = last
    call grid%create_of_blocks(comm, cells, low, high, periodic=wrap, holes=holes, stat=status, fold=fold)
    call expect(status == 0, 'create_of_blocks')
    n = grid%blocks()
    call expect(n == 1 .and. all(grid%block_first(n) == first), 'block_first')
    call expect(all(grid%block_shape(n) == last - first + 1), 'block_shape')
    call exchange_and_check('blocks')
    call grid%create_cartesian(cart, cells, axes=axes, periodic=wrap, stat=status, fold=fold)
    call expect(status == 0, 'create_cartesian')
    call exchange_and_check('cartesian')
  end subroutine

  integer function number(i, j)
    integer, intent(in) :: i, j
    number = sum(modulo(grid%first() - 2 + [i, j], cells)*[1, 100]) + 1
  end function

  subroutine exchange_and_check(name)
    character(*), intent(in) :: name
    real, allocatable, target :: u(:, :, :), moved(:, :)
    double precision, allocatable, target :: v(:, :, :)
    real(16), allocatable, target :: w(:, :, :)
    integer, allocatable, target :: count(:, :, :)
    logical, allocatable, target :: odd(:, :, :)
    integer :: n(2), slot, status, layers, dims, where, i, j
    logical :: corners, guard, done
    n = grid%shape()
    layers = 1
    dims = 2
    where = halo_cell
    corners = .true.
    guard = .false.
    allocate (u(0:n(1) + 1, 0:n(2) + 1, 2), v(0:n(1) + 1, 0:n(2) + 2, 2), w(0:n(1) + 1, 0:n(2) + 1, 2))
    allocate (count(0:n(1) + 1, 0:n(2) + 1, 2), odd(0:n(1) + 1, 0:n(2) + 1, 2), moved(0:n(1) + 1, 0:n(2) + 1))
    call halo%add(u(:, :, 1), halo=layers, centring=where, dims=dims)
    call halo%add_slot(u(:, :, 2))
    call halo%add(v(:, :, 1), low=[1, 1], high=[1, 2])
    call halo%add_slot(v(:, :, 2))
    call halo%add(w(:, :, 1))
    call halo%add_slot(w(:, :, 2))
    call halo%add(count(:, :, 1), 1)
    call halo%add_slot(count(:, :, 2))
    call halo%add(odd(:, :, 1), 1)
    call halo%add_slot(odd(:, :, 2))
    call halo%open(grid, strategy='ordered/p2p', corners=corners, stat=status, guard=guard)
    call expect(status == 0 .and. index(halo%report(stat=status), 'ordered/p2p') == 1, name//' open')
    call expect(status == 0, name//' report')
    do slot = 1, 2
      u = -1
      v = -1
      w = -1
      count = -1
      odd = .false.
      do j = 1, n(2)
        do i = 1, n(1)
          u(i, j, slot) = real(number(i, j))
          v(i, j, slot) = number(i, j)/3d0
          w(i, j, slot) = number(i, j)/3._16
          count(i, j, slot) = number(i, j)
          odd(i, j, slot) = modulo(number(i, j), 2) == 1
        end do
      end do
      if (slot == 1) then
        call halo%run(slot, stat=status)
      else
        call halo%start(slot=slot, stat=status)
        call expect(status == 0, name//' start')
        done = .false.
        do while (.not. done)
          done = halo%progress(stat=status)
        end do
        call expect(status == 0, name//' progress')
        call halo%finish(stat=status)
      end if
      call expect(status == 0, name//' run')
      do j = 0, n(2) + 2
        do i = 0, n(1) + 1
          call expect(abs(v(i, j, slot) - number(i, j)/3d0) <= 0, name//' double precision')
          if (j > n(2) + 1) cycle
          call expect(nint(u(i, j, slot)) == number(i, j), name//' real')
          call expect(abs(w(i, j, slot) - number(i, j)/3._16) <= 0, name//' real(16)')
          call expect(count(i, j, slot) == number(i, j), name//' integer')
          call expect(odd(i, j, slot) .eqv. modulo(number(i, j), 2) == 1, name//' logical')
        end do
      end do
      call expect(all(count(:, :, 3 - slot) == -1), name//' other slot')
    end do
    moved = -1
    moved(1:n(1), 1:n(2)) = u(1:n(1), 1:n(2), 2)
    call halo%rebind(moved, number=1, slot=2, stat=status)
    call expect(status == 0, name//' rebind')
    call halo%run(2)
    call expect(all(nint(moved) == nint(u(:, :, 2))), name//' memory that moved')
    moved(0, :) = -1
    moved(n(1) + 1, :) = -1
    call halo%run(2, stat=status, only=[1, 4], depth=layers, low=[1, 0], high=[0, 0], ghost_rows=.false.)
    call expect(status == 0 .and. all(nint(moved(0, 1:n(2))) == nint(u(0, 1:n(2), 2))), name//' part')
    call expect(all(nint(moved(n(1) + 1, :)) == -1), name//' other side')
    call halo%run_at(moved, slot=2, stat=status)
    call expect(status == 0, name//' array of a call')
    call halo%start(slot=2, stat=status, only=[1], depth=layers, low=[0, 0], high=[1, 1], ghost_rows=.false.)
    call halo%finish()
    call expect(status == 0 .and. nint(moved(n(1) + 1, 1)) == nint(u(n(1) + 1, 1, 2)), name//' started part')
    call halo%free(stat=status)
    call expect(status == 0, name//' free')
  end subroutine

  subroutine accumulate_and_check()
    integer, allocatable, target :: count(:, :)
    type(halo_panels) :: faces
    integer :: n(2), status, slot
    n = grid%shape()
    slot = 1
    allocate (count(0:n(1) + 1, 0:n(2) + 1), source=1)
    call halo%add(count, halo=slot, room_low=[1, 1], room_high=[1, 1], high_faces=[.false., .true.])
    call halo%free(stat=status)
    faces = halo_cubed_sphere(slot, levels=slot)
    call halo%add(count, halo=slot, vector=slot, along=slot)
    call halo%free(stat=status)
    call halo%add(count, halo=slot, room=slot, room_low=[1, 1], room_high=[1, 1], edges_low=[0, 1], edges_high=[3, 0])
    call halo%open(grid, 'ordered/p2p')
    call halo%start_accumulate(slot=slot, stat=status)
    call expect(status == 0, 'start_accumulate')
    call halo%finish()
    call halo%accumulate(slot=slot, stat=status)  ! nothing more: the halos are clear
    call expect(status == 0, 'accumulate')
    call expect(sum(count) == product(n + 2), 'accumulated')
    count = 1
    call halo%accumulate(slot=slot, stat=status, only=[1], depth=slot, low=[1, 0], high=[0, 0], ghost_rows=.false.)
    call expect(status == 0 .and. count(n(1), 1) == 2 .and. count(1, 1) == 1, 'accumulated side')
    call halo%start_accumulate(slot=slot, stat=status, only=[1], depth=slot, low=[0, 1], high=[0, 0], ghost_rows=.false.)
    call halo%finish()
    call expect(status == 0 .and. count(1, n(2)) == 2, 'another accumulated side')
    call halo%free()
  end subroutine

  !> Nodes at the ends of a rank's block belong to the next blocks.
  subroutine share_and_sum()
    real, allocatable, target :: node(:, :)
    double precision :: total
    integer :: n(2), status, slot, layers, dims, where, first, unit
    character(40) :: path
    n = grid%shape()
    slot = 1
    first = 1
    layers = 0
    dims = 2
    where = halo_node
    allocate (node(n(1) + 1, n(2) + 1), source=2.)
    node(:n(1), :n(2)) = 1
    call halo%add(node, halo=layers, centring=where)
    call halo%open(grid, 'ordered/p2p')
    call halo%start_share(slot=slot, stat=status, only=[1])
    call expect(status == 0, 'start_share')
    call halo%finish()
    call expect(all(nint(node) == 1), 'shared')
    call halo%share(slot=slot, stat=status, only=[1])
    call expect(status == 0, 'share')
    total = grid%sum_field(halo, first, slot=slot, stat=status, errmsg=text)
    call expect(status == 0 .and. nint(total) == product(cells), 'sum_field: '//trim(text))
    total = grid%dot_fields(halo, first, first, slot=slot, stat=status, errmsg=text)
    call expect(status == 0 .and. nint(total) == product(cells), 'dot_fields')
    total = grid%norm_field(halo, first, slot=slot, stat=status, errmsg=text)
    call expect(status == 0 .and. nint(total**2) == product(cells), 'norm_field')
    write (path, '(2(a, i0), a)') 'nodes_', kind(1), '_', kind(1.), '.npy'
    call grid%write_field(halo, first, path, slot=slot, stat=status, errmsg=text, order='C')
    call expect(status == 0, 'write_field: '//trim(text))
    call grid%read_field(halo, first, path, slot=slot, stat=status, errmsg=text, order='C')
    call expect(status == 0 .and. all(nint(node) == 1), 'read_field: '//trim(text))
    call grid%write_field(halo, first, path, offset=128, stat=status, errmsg=text)
    call expect(status == 0, 'write_field at an offset: '//trim(text))
    call grid%read_field(halo, first, path, offset=128, stat=status, errmsg=text)
    call expect(status == 0 .and. all(nint(node) == 1), 'read_field at an offset: '//trim(text))
    if (own_rank() == 0) open (newunit=unit, file=path)
    if (own_rank() == 0) close (unit, status='delete')
    total = grid%sum_field(halo, 2, stat=status, errmsg=text)
    call expect(status == 2 .and. index(text, 'no field 2 exists') > 0, 'a field that the exchange lacks: '//trim(text))
    call halo%free()
    total = grid%norm_field(halo, first, stat=status, errmsg=text)
    call expect(status == 2 .and. index(text, 'not open') > 0, 'a sum of a closed exchange: '//trim(text))
    total = grid%sum(node, halo=layers, low=[0, 0], high=[0, 0], centring=where, stat=status)
    call expect(status == 0 .and. nint(total) == product(cells), 'sum')
    total = grid%dot(node, node, halo=layers, low=[0, 0], high=[0, 0], centring=where, dims=dims, stat=status)
    call expect(status == 0 .and. nint(total) == product(cells), 'dot')
    total = grid%norm(node, halo=layers, low=[0, 0], high=[0, 0], centring=where, dims=dims, stat=status)
    call expect(status == 0 .and. nint(total**2) == product(cells), 'norm')
  end subroutine

  subroutine gather_on_one_rank()
    type(halo_grid) :: one
    type(halo_redistribution) :: move
    integer, allocatable, target :: count(:, :), all_of_them(:, :)
    integer :: n(2), status, layers, no_layers, dims, where, active, i, j, unit, bytes
    character(5), allocatable, target :: letters(:, :)
    double precision :: total
    logical :: done, there
    character(40) :: path
    n = grid%shape()
    layers = 1
    no_layers = 0
    dims = 2
    where = halo_cell
    active = 1
    call one%create(comm, cells, periodic=[.true., .true.], stat=status, active_ranks=active)
    call expect(status == 0, 'create on one rank')
    allocate (count(0:n(1) + 1, 0:n(2) + 1), source=-1)
    do j = 1, n(2)
      do i = 1, n(1)
        count(i, j) = number(i, j)
      end do
    end do
    n = one%shape()
    allocate (all_of_them(n(1), n(2)), source=-1)
    call move%add(count, all_of_them, halo=layers, target_halo=no_layers, centring=where, dims=dims)
    call move%open(grid, one, strategy='direct/p2p', stat=status, errmsg=text)
    call expect(status == 0, 'open of a redistribution')
    call move%start(stat=status, errmsg=text)
    call expect(status == 0, 'start of a redistribution')
    done = .false.
    do while (.not. done)
      done = move%progress(stat=status, errmsg=text)
    end do
    call move%finish(stat=status, errmsg=text)
    call expect(status == 0, 'finish of a redistribution')
    do j = 1, n(2)
      do i = 1, n(1)
        call expect(all_of_them(i, j) == i - 1 + 100*(j - 1) + 1, 'gathered')
      end do
    end do
    all_of_them = -1
    call move%run(stat=status, errmsg=text)
    call expect(status == 0 .and. all(all_of_them > 0), 'gathered again')
    call expect(index(move%report(stat=status, errmsg=text), 'direct/p2p') == 1, 'report of a redistribution')
    call move%free(stat=status, errmsg=text)
    call expect(status == 0, 'free of a redistribution')
    call move%add_source(count, halo=layers, centring=where, dims=dims)
    call move%add_target(all_of_them, halo=no_layers, centring=where, dims=dims)
    all_of_them = -1
    call move%open(grid, one, stat=status, errmsg=text)
    call move%run(stat=status, errmsg=text)
    call expect(status == 0 .and. all(all_of_them > 0), 'gathered by sources and targets')
    call move%free()
    call move%run(stat=status)
    call expect(status == 2, 'run of a freed redistribution')
    count = -1
    write (path, '(2(a, i0), a)') 'default_kinds_', kind(1), '_', kind(1.), '.npy'
    call one%write(all_of_them, path, halo=no_layers, low=[0, 0], high=[0, 0], centring=where, dims=dims, stat=status, order='F')
    call expect(status == 0, 'write')
    call grid%read(count, path, halo=layers, low=[1, 1], high=[1, 1], centring=where, dims=dims, stat=status, order='F')
    call expect(status == 0 .and. count(1, 1) == number(1, 1) .and. count(0, 1) == -1, 'read')
    call grid%read(count, path, halo=layers, stat=status, errmsg=text, order='C')
    call expect(status == 2 .and. index(text, 'order F') > 0, 'read in another order: '//trim(text))
    call one%write(all_of_them, path, halo=no_layers, offset=128, stat=status)
    call expect(status == 0, 'write at an offset')
    call grid%read(count, path, halo=layers, offset=128, stat=status)
    call expect(status == 0 .and. count(1, 1) == number(1, 1), 'read at an offset')
    allocate (letters(size(all_of_them, 1), size(all_of_them, 2)), source='abcde')
    call one%write(letters, path, halo=no_layers, stat=status, errmsg=text)
    inquire (file=path, exist=there, size=bytes)
    call expect(status == 0 .and. there .and. bytes == 128 + 5*product(cells), 'file of characters')
    text = 'kept'
    total = one%sum(letters, stat=status, errmsg=text)
    call expect(status == 2 .and. len_trim(text) > 5, 'sum of characters: '//trim(text))
    call meet()
    if (own_rank() == 0) then
      open (newunit=unit, file=path)
      close (unit, status='delete')
    end if
    call move%add(count, all_of_them)
    call move%open(grid, one, stat=refused, errmsg=text)
    call expect(refused == 2 .and. index(text, 'halo of 1') > 0, trim(text))
    call one%free()
  end subroutine

  subroutine guard_and_check()
    real, allocatable, target :: u(:, :)
    integer :: n(2), status, fresh, depth, slot
    n = grid%shape()
    fresh = 1
    depth = 1
    slot = 1
    allocate (u(0:n(1) + 1, 0:n(2) + 1), source=1.)
    call halo%add(u)
    call halo%open(grid, 'ordered/p2p', guard=.true.)
    call halo%run()
    call halo%changed(fresh=fresh, stat=status, slot=slot)
    call expect(status == 0, 'changed')
    call halo%require_fresh(depth=depth, stat=status, slot=slot)
    call expect(status == 0, 'fresh')
    call halo%changed()
    call halo%require_fresh(depth=depth, stat=status)
    call expect(status == 2, 'stale')
    call halo%check_clean(stat=status, slot=slot)
    call expect(status == 0, 'clean')
    call halo%free()
  end subroutine

  !> Optional arguments of the caller's own, absent or not, are arguments of the module's procedures.
  subroutine pass_absent_arguments_on()
    real, allocatable, target :: u(:, :)
    integer :: n(2), status
    n = grid%shape()
    allocate (u(0:n(1) + 1, 0:n(2) + 1), source=real(own_rank()))
    call fill(u)
    call fill(u, layers=1, corners=.true., slot=1, ierror=status)
    call expect(status == 0, 'arguments passed on')
    call fill(u, layers=2, ierror=status)
    call expect(status == 2, 'failure passed on')
  end subroutine

  subroutine fill(u, layers, corners, slot, ierror)
    real, intent(inout), target :: u(:, :)
    integer, intent(in), optional :: layers, slot
    logical, intent(in), optional :: corners
    integer, intent(out), optional :: ierror
    call halo%add(u, halo=layers)
    call halo%open(grid, corners=corners, stat=ierror)
    if (present(ierror)) then
      if (ierror /= 0) return
    end if
    call halo%run(slot, ierror)
    call halo%free()
  end subroutine

  !> Mixes kinds of the module and of MPI's constants with the program's.
  subroutine mix_kinds()
    type(halo_grid) :: other
    integer(c_int32_t) :: short(2), status
    integer(c_int64_t) :: long(2)
    long = grid%first(mold=0_c_int64_t) + grid%shape(mold=0_c_int64_t) - 1
    call other%create_of_boxes(world(), cells, grid%first(), long, [.true._c_int32_t, .true._c_int32_t], stat=status)
    call expect(status == 0 .and. all(other%shape() == grid%shape()), 'mixed kinds')
    short = other%first(mold=0_c_int32_t)
    call expect(all(short == grid%first()), 'first')
    call other%create(int(comm, c_int64_t), [large*rank_count()], [.false._c_int64_t])
    long(1:1) = other%first(mold=0_c_int64_t)
    call expect(long(1) == 1 + own_rank()*large, 'first of a large grid')
    long(1:1) = other%shape(mold=0_c_int64_t)
    call expect(long(1) == large, 'shape of a large grid')
    call other%free()
  end subroutine

  !> An impossible request of one rank is refused on all of them, by the argument's name.
  subroutine check_refusals_on_grids()
    type(halo_grid) :: other
    integer(c_int64_t) :: two(2), nodes(rank_count())
    logical :: first
    first = own_rank() == 0
    two = merge(large, 1_c_int64_t, first)
    nodes = 0
    nodes(1) = two(1)
    call other%create(large, cells, stat=refused, errmsg=text)
    call expect_refusal('comm')
    call other%create(communicator(int(world())), cells, stat=refused, errmsg=text)
    call expect_refusal('comm')
    call expect(index(text, 'mpi_val') > 0, trim(text))
    call other%create(comm, cells, nodes=nodes, stat=refused, errmsg=text)
    call expect_refusal('nodes')
    call other%create_cartesian(cart, cells, axes=two, stat=refused, errmsg=text)
    call expect_refusal('axes')
    if (first) then
      call other%create(comm, [12., 10.], stat=refused, errmsg=text)
    else
      call other%create(comm, cells, stat=refused, errmsg=text)
    end if
    call expect_refusal('cells')
    if (first) then
      call other%create(comm, cells, periodic=[1, 1], stat=refused, errmsg=text)
    else
      call other%create(comm, cells, stat=refused, errmsg=text)
    end if
    call expect_refusal('periodic')
    if (first) then
      call other%create(comm, cells, reorder=1, stat=refused, errmsg=text)
    else
      call other%create(comm, cells, stat=refused, errmsg=text)
    end if
    call expect_refusal('reorder')
    call other%create(comm, cells, nodes=[0_c_int64_t*nodes, 0_c_int64_t], stat=refused, errmsg=text)
    call expect(refused == 2 .and. index(text, 'nodes has') > 0, trim(text))
    call other%create(comm, cells, nodes=nodes(2:1), stat=refused, errmsg=text)
    call expect_refusal('nodes')
    call other%create(comm, cells, periodic=[.true.], stat=refused, errmsg=text)
    call expect_refusal('periodic')
    call other%create_cartesian(cart, cells, axes=[1, 2, 3], stat=refused, errmsg=text)
    call expect_refusal('axes')
    call other%create_of_boxes(comm, cells, [1], cells, stat=refused, errmsg=text)
    call expect_refusal('first')
    call other%create_of_boxes(comm, cells, [1, 1], cells(1:1), stat=refused, errmsg=text)
    call expect_refusal('last')
    call other%create(comm, [1, 2, 3, 4], stat=refused, errmsg=text)
    call expect(refused == 2 .and. index(text, '1 to 3 dimensions') > 0, trim(text))
    call other%create_of_boxes(comm, cells, [1., 1.], cells, stat=refused, errmsg=text)
    call expect_refusal('first')
    call other%create_of_boxes(comm, cells, [1, 1], [12., 10.], stat=refused, errmsg=text)
    call expect_refusal('last')
    call other%create_of_boxes(comm, cells, [1, 1], cells, holes='no', stat=refused, errmsg=text)
    call expect_refusal('holes')
  end subroutine

  subroutine check_refusals_of_arrays()
    real, allocatable, target :: u(:, :)
    integer(c_int8_t), pointer :: long_points(:, :, :)
    integer :: n(2)
    integer(c_int64_t) :: one, two(2)
    n = grid%shape()
    one = merge(large, 1_c_int64_t, own_rank() == 0)
    two = one
    allocate (u(0:n(1) + 1, 0:n(2) + 1), source=1.)
    call halo%add(u, halo=one)
    call refuse_to_open('halo')
    call halo%add(u, halo=1.)
    call refuse_to_open('halo')
    call halo%add(u, low=two)
    call refuse_to_open('low')
    call halo%add(u, low=[1])
    call refuse_to_open('low')
    call halo%add(u, high=[1, 1, 1])
    call refuse_to_open('high')
    call halo%add(u, high=two)
    call refuse_to_open('high')
    call halo%add(u, centring=large)
    call refuse_to_open('centring')
    call halo%add(u, dims=large)
    call refuse_to_open('dims')
    call halo%add(u, dims=-1)
    call halo%open(grid, stat=refused, errmsg=text)
    call expect(refused == 2 .and. index(text, 'of -1 dimensions') > 0, trim(text))
    call c_f_pointer(c_loc(u), long_points, [large, n + 2_c_int64_t])  ! never read
    call halo%add(long_points, dims=2)
    call halo%open(grid, stat=refused, errmsg=text)
    call expect(refused == 2 .and. index(text, '5000000000 bytes') > 0, trim(text))
    call halo%add(u)
    call halo%open(grid, corners=1, stat=refused, errmsg=text)
    call expect_refusal('corners')
    call halo%add(u)
    call halo%open(grid, guard=0, stat=refused, errmsg=text)
    call expect_refusal('guard')
  end subroutine

  subroutine refuse_to_open(name)
    character(*), intent(in) :: name
    call halo%open(grid, stat=refused, errmsg=text)
    call expect_refusal(name)
  end subroutine

  subroutine expect_refusal(name)
    character(*), intent(in) :: name
    call expect(refused == 2 .and. index(text, "'"//name//"'") > 0, name//': '//trim(text))
  end subroutine

  subroutine check_refusals_of_steps()
    real, allocatable, target :: u(:, :)
    integer :: n(2)
    n = grid%shape()
    allocate (u(0:n(1) + 1, 0:n(2) + 1), source=1.)
    call halo%add(u)
    call halo%open(grid, 'ordered/p2p')
    call halo%run(slot=large, stat=refused, errmsg=text)
    call expect_refusal('slot')
    call halo%start(slot=1., stat=refused, errmsg=text)
    call expect_refusal('slot')
    call halo%accumulate(slot=large, stat=refused, errmsg=text)
    call expect_refusal('slot')
    call halo%start_accumulate(slot=-large, stat=refused, errmsg=text)
    call expect_refusal('slot')
    call halo%rebind(u, number=large, stat=refused, errmsg=text)
    call expect_refusal('number')
    call halo%rebind(u, slot=large, stat=refused, errmsg=text)
    call expect_refusal('slot')
    call halo%changed(fresh=large, stat=refused, errmsg=text)
    call expect_refusal('fresh')
    call halo%require_fresh(depth=large, stat=refused, errmsg=text)
    call expect_refusal('depth')
    call halo%changed(slot=large, stat=refused, errmsg=text)
    call expect_refusal('slot')
    call halo%require_fresh(depth=1, slot=1., stat=refused, errmsg=text)
    call expect_refusal('slot')
    call halo%check_clean(slot=large, stat=refused, errmsg=text)
    call expect_refusal('slot')
    call halo%run(stat=refused)
    call expect(refused == 0, 'run after refusals')
    call halo%free()
  end subroutine
end program
