! Halos through the Fortran module: arrays of any lower bounds, types and widths, sections, components; bad requests.
program exchange
  use, intrinsic :: iso_c_binding
  use haloscope
  implicit none

  interface
    include 'mpi_for_fortran.inc'
    integer(c_int32_t) function hs_imitated_allocate(bytes, device, memory) bind(c)  ! a device for the test
      import :: c_int32_t, c_int64_t, c_ptr
      integer(c_int64_t), value :: bytes
      integer(c_int32_t), value :: device
      type(c_ptr), intent(out) :: memory
    end function
    integer(c_int32_t) function hs_imitated_release(memory) bind(c)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: memory
    end function
    integer(c_int32_t) function hs_imitated_make_stream(device, stream) bind(c)
      import :: c_int32_t, c_ptr
      integer(c_int32_t), value :: device
      type(c_ptr), intent(out) :: stream
    end function
    integer(c_int32_t) function hs_imitated_free_stream(stream) bind(c)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: stream
    end function
    integer(c_int32_t) function hs_imitated_finish(stream) bind(c)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: stream
    end function
  end interface

  integer, parameter :: cells(2) = [30, 21]
  type(halo_grid) :: grid
  type(halo_exchange) :: halo
  integer :: wrong = 0, stat, n
  character(300) :: text

  call begin_mpi()
  call grid%create(world(), cells, periodic=[.true., .true.])
  call fill_and_check('even')
  call grid%create(world(), cells, periodic=[.true., .true.], reorder=.true., nodes=[(mod(n, 2), n=1, rank_count())])
  call fill_and_check('reordered')
  call grid%create_cartesian(cartesian(), cells)
  call fill_and_check('cartesian')
  call columns_and_check()
  call fill_edges_and_check()
  call fold_and_check()
  call cross_seams_and_check()
  call exchange_parts_and_check()
  call exchange_other_arrays_and_check()
  call accumulate_and_check()
  call sum_and_check()
  call move_blocks_and_check()
  call exchange_on_device_and_check()
  call guard_and_check()
  call guard_slots_and_check()
  call check_refusals()
  call grid%free()
  if (wrong == 0) print '(a, i0, a)', 'rank ', own_rank(), ': right'
  call end_mpi()

contains

  !> The global number of the cell at local (i, j), from 1, periodic.
  pure integer function number(first, i, j)
    integer, intent(in) :: first(2), i, j
    number = modulo(first(1) - 1 + i - 1, cells(1)) + 100*modulo(first(2) - 1 + j - 1, cells(2))
  end function

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    print '(a, i0, 2a)', 'rank ', own_rank(), ': wrong: ', what
    wrong = wrong + 1
  end subroutine

  !> The last call has failed, with this part in its text.
  subroutine expect_refusal(part)
    character(*), intent(in) :: part
    call expect(stat == 2 .and. index(text, part) > 0, trim(text))
  end subroutine

  subroutine refuse_to_open(part)
    character(*), intent(in) :: part
    call halo%open(grid, stat=stat, errmsg=text)
    call expect_refusal(part)
  end subroutine

  !> Walls in dimension 1, an open boundary above dimension 2.
  subroutine fill_edges_and_check()
    type(halo_grid) :: box
    real(8), allocatable, target :: u(:, :)
    integer :: n(2), low(2), i, j, x, y
    real(8) :: value
    call box%create(world(), [6, 4*rank_count()])
    n = box%shape()
    low = box%first() - 1
    allocate (u(-1:n(1) + 2, -1:n(2) + 2), source=-1d0)
    do concurrent(i=1:n(1), j=1:n(2))
      u(i, j) = low(1) + i + 100*(low(2) + j)
    end do
    call halo%add(u, halo=2, edges_low=[halo_odd, halo_fixed], edges_high=[halo_even, halo_nearest])
    call halo%open(box, strategy='direct/p2p')
    call halo%run()
    do j = -1, n(2) + 2
      do i = -1, n(1) + 2
        x = low(1) + i
        y = min(low(2) + j, 4*rank_count())
        value = merge(1 - x, merge(13 - x, x, x > 6), x < 1) + 100*y
        if (x < 1) value = -value
        if (y < 1) value = -1
        call expect(abs(u(i, j) - value) < 1d-9, 'a point beyond an edge')
      end do
    end do
    call halo%free()
    call halo%add(u, halo=2, edges_low=[4, 0])
    call halo%open(box, stat=stat, errmsg=text)
    call expect_refusal('edge')
    call box%free()
  end subroutine

  !> A grid folded at the top of dimension 2, about nodes, and a velocity on the high faces of dimension 1.
  subroutine fold_and_check()
    type(halo_grid) :: globe
    real(8), allocatable, target :: t(:, :), u(:, :)
    integer :: n(2), low(2), i, j, y
    integer, parameter :: length = 10
    y = 4*rank_count()
    call globe%create(world(), [length, y], periodic=[.true., .false.], fold=halo_fold_node)
    n = globe%shape()
    low = globe%first() - 1
    allocate (t(0:n(1) + 1, 0:n(2) + 1), u(0:n(1) + 1, 0:n(2) + 1), source=-1d0)
    do concurrent(i=1:n(1), j=1:n(2))
      t(i, j) = low(1) + i + 100*(low(2) + j)
      u(i, j) = -t(i, j)
    end do
    call halo%add(t, halo=1)
    call halo%add(u, halo=1, edges_high=[halo_fixed, halo_odd], high_faces=[.true., .false.])
    call halo%open(globe, strategy='direct/p2p')
    call halo%run()
    if (low(2) + n(2) == y) then
      do i = 0, n(1) + 1
        call expect(nint(t(i, n(2) + 1)) == modulo(length - low(1) - i, length) + 1 + 100*y, 'a point beyond a fold')
        call expect(nint(u(i, n(2) + 1)) == modulo(length - 1 - low(1) - i, length) + 1 + 100*y, 'a face beyond a fold')
      end do
    end if
    call halo%free()
    call globe%create(world(), [length, y], fold=halo_fold_node, stat=stat, errmsg=text)
    call expect_refusal('a grid folds')
  end subroutine

  !> A scalar and a vector on the faces of a cubed sphere that this rank has.
  subroutine cross_seams_and_check()
    integer, parameter :: edge = 3
    type(halo_grid) :: sphere
    type(halo_panels) :: faces
    real(8), target :: t(0:edge + 1, 0:edge + 1, 6), u(0:edge + 1, 0:edge + 1, 6), v(0:edge + 1, 0:edge + 1, 6)
    integer, allocatable :: own(:)
    integer :: i, j, n, face
    faces = halo_cubed_sphere(edge)
    own = [(face, face=own_rank() + 1, 6, rank_count())]
    call sphere%create_of_blocks(world(), [6*edge, edge], faces%first(:, own), faces%last(:, own), panels=faces)
    do concurrent(i=1:edge, j=1:edge, n=1:size(own))
      t(i, j, n) = on_sphere(1, own(n), i, j)
      u(i, j, n) = on_sphere(2, own(n), i, j)
      v(i, j, n) = on_sphere(3, own(n), i, j)
    end do
    do n = 1, max(1, size(own))
      call halo%add(t(:, :, n))
      call halo%add(u(:, :, n), vector=1)
      call halo%add(v(:, :, n), vector=1, along=2)
    end do
    call halo%open(sphere)
    call halo%run()
    do n = 1, size(own)
      face = own(n)
      do i = 1, edge
        if (mod(face, 2) == 1) then
          call expect(nint(t(edge + 1, i, n)) == on_sphere(1, face + 1, 1, i), 'a scalar of the next face')
          call expect(nint(t(i, edge + 1, n)) == on_sphere(1, face + 2, 1, edge + 1 - i), 'a scalar of a turned face')
          call expect(nint(u(i, edge + 1, n)) == -on_sphere(3, face + 2, 1, edge + 1 - i), 'a vector of a turned face')
        else
          call expect(nint(v(i, edge + 1, n)) == on_sphere(3, face + 1, i, 1), 'a vector of the next face')
          call expect(nint(u(edge + 1, i, n)) == on_sphere(3, face + 2, edge + 1 - i, 1), 'a component turned')
        end if
      end do
    end do
    call halo%free()
    faces%seams(1)%high = .false.
    call sphere%create_of_blocks(world(), [6*edge, edge], faces%first(:, own), faces%last(:, own), panels=faces, &
                                 stat=stat, errmsg=text)
    call expect_refusal('two seams')
    deallocate (faces%seams)
    call sphere%create(world(), [6*edge, edge], panels=faces, stat=stat, errmsg=text)
    call expect_refusal('allocate all three')
  end subroutine

  !> The value of a scalar (1) and of the components of a vector (2, 3) in a cell of a face.
  pure integer function on_sphere(what, face, i, j)
    integer, intent(in) :: what, face, i, j
    on_sphere = i + 10*j + 100*(modulo(face - 1, 6) + 1) + 1000*what
  end function

  subroutine fill_and_check(name)
    character(*), intent(in) :: name
    real(8), allocatable, target :: u(:, :), wide(:, :)
    integer(1), allocatable, target :: flag(:, :)
    complex(4), allocatable, target :: wave(:, :, :)
    integer :: first(2), n(2), i, j
    first = grid%first()
    n = grid%shape()
    allocate (u(-1:n(1) + 2, 0:n(2) + 3), source=-1._8)          ! two layers; one below and three above
    allocate (wide(2*(n(1) + 2), n(2) + 2), source=-1._8)         ! every second row is exchanged
    allocate (flag(n(1), 0:n(2)), source=-1_1)                   ! one layer below in dimension 2
    allocate (wave(2, 0:n(1) + 1, 0:n(2) + 1), source=(-1._4, 0._4))  ! two components
    call halo%add(u, low=[2, 1], high=[2, 3])
    call halo%add(wide(1::2, :), halo=1)
    call halo%add(flag, low=[0, 1], high=[0, 0])
    call halo%add(wave, dims=2)
    call halo%open(grid, strategy='direct/p2p')
    do j = 1, n(2)
      do i = 1, n(1)
        u(i, j) = number(first, i, j)
        wide(2*i + 1, j + 1) = number(first, i, j) + 0.5d0
        flag(i, j) = int(modulo(number(first, i, j), 100), 1)
        wave(:, i, j) = [cmplx(number(first, i, j), 1), cmplx(number(first, i, j), 2)]
      end do
    end do
    call halo%start()
    do while (.not. halo%progress())
    end do
    call halo%finish()
    do j = -1, n(2) + 3
      do i = -1, n(1) + 2
        if (j >= 0) call expect(nint(u(i, j)) == number(first, i, j), name//' u')
        if (i < 0 .or. i > n(1) + 1 .or. j < 0 .or. j > n(2) + 1) cycle
        call expect(wide(2*i + 1, j + 1) == number(first, i, j) + 0.5d0, name//' section')
        call expect(wide(2*i + 2, j + 1) == -1d0, name//' beside a section')
        call expect(all(nint(real(wave(:, i, j))) == number(first, i, j)), name//' components')
        if (i > 0 .and. i <= n(1) .and. j <= n(2)) &
          call expect(flag(i, j) == modulo(number(first, i, j), 100), name//' flag')
      end do
    end do
    call expect(index(halo%report(), 'direct/p2p') == 1, 'report')
    call halo%free()
  end subroutine

  !> Some arrays, layers and sides by call.
  subroutine exchange_parts_and_check()
    real(8), allocatable, target :: u(:, :), v(:, :)
    integer :: first(2), n(2), none(0)
    first = grid%first()
    n = grid%shape()
    allocate (u(-1:n(1) + 2, -1:n(2) + 2), v(0:n(1) + 1, 0:n(2) + 1))
    call halo%add(u, halo=2)
    call halo%add(v)
    call halo%open(grid, strategy='ordered/p2p')
    call set_own(u, v)
    call halo%run(only=[1], depth=1)
    call expect(u(0, 1) == number(first, 0, 1) .and. u(-1, 1) == -1 .and. all(v(0, :) == -1), 'one layer of one array')
    call halo%run(only=[2], low=[1, 0], high=[0, 0])
    call expect(v(0, 1) == number(first, 0, 1) .and. all(v(n(1) + 1, :) == -1) .and. all(v(:, 0) == -1), 'one side')
    call halo%start(depth=1_8)
    call halo%finish()
    call expect(v(n(1) + 1, n(2) + 1) == number(first, n(1) + 1, n(2) + 1) .and. u(-1, 1) == -1, 'one layer of both')
    u = 1
    v = 1
    call halo%accumulate(only=[2_8, 1_8], low=[1, 0], high=[0, 0])
    call expect(u(n(1), 1) == 2 .and. v(n(1), n(2)) == 2 .and. u(0, 1) == 0 .and. u(-1, 1) == 1, 'accumulated side')
    call halo%start_accumulate(only=[1], depth=0)
    call halo%finish()
    call halo%run(only=[3], stat=stat, errmsg=text)
    call expect_refusal("'only' names array 3")
    call halo%run(only=none, stat=stat, errmsg=text)
    call expect_refusal('names no array')
    call halo%run(only=[1, 1], stat=stat, errmsg=text)
    call expect_refusal('twice')
    call halo%run(depth=2, stat=stat, errmsg=text)
    call expect_refusal('2 layers')
    call halo%run(depth=-1, stat=stat, errmsg=text)
    call expect_refusal('negative')
    call halo%run(low=[1], stat=stat, errmsg=text)
    call expect_refusal("'low'")
    call halo%run(high=[0, -1], stat=stat, errmsg=text)
    call expect_refusal("'high' is negative")
    call halo%run()
    call halo%free()
  end subroutine

  !> Arrays with more layers than are filled, and other arrays by call.
  subroutine exchange_other_arrays_and_check()
    real(8), allocatable, target :: u(:, :), other(:, :), v(:, :)
    integer :: first(2), n(2)
    first = grid%first()
    n = grid%shape()
    allocate (u(-1:n(1) + 2, -1:n(2) + 2), other(-1:n(1) + 2, -1:n(2) + 2), v(0:n(1) + 1, 0:n(2) + 1))
    call halo%add(u, halo=1, room=2)
    call halo%add(v, low=[1, 0], high=[0, 0], room_low=[1, 1], room_high=[1_8, 1_8])
    call halo%open(grid, strategy='ordered/p2p')
    call set_own(u, v)
    call halo%run()
    call expect(u(0, 0) == number(first, 0, 0) .and. all(u(-1, :) == -1) .and. all(u(:, n(2) + 2) == -1), 'room')
    call expect(v(0, 1) == number(first, 0, 1) .and. all(v(n(1) + 1, :) == -1) .and. all(v(:, 0) == -1), 'room of sides')
    call set_own(other, v)
    call halo%run_at(other)
    call expect(other(0, 0) == number(first, 0, 0) .and. all(other(-1, :) == -1), 'another array')
    call set_own(u, v)
    call halo%run_at(u, v)
    call halo%run_at(u, v)
    call expect(u(0, 0) == number(first, 0, 0) .and. v(0, 1) == number(first, 0, 1), 'the first arrays again')
    call halo%run_at(v, stat=stat, errmsg=text)
    call expect_refusal('differs in shape')
    call halo%run_at(u, v, u, stat=stat, errmsg=text)
    call expect_refusal('no array 3 exists')
    call halo%run_at(u, slot=2, stat=stat, errmsg=text)
    call expect_refusal('no slot 2')
    call halo%run()
    call halo%free()
    call halo%add(u, halo=2, room=1)
    call refuse_to_open('room for fewer ghost layers')
    call halo%add(u, halo=1)
    call refuse_to_open('pass its layers as room=')
  end subroutine

  subroutine set_own(u, v)
    real(8), intent(inout) :: u(-1:, -1:), v(0:, 0:)
    integer :: first(2), n(2), i, j
    first = grid%first()
    n = grid%shape()
    u = -1
    v = -1
    do j = 1, n(2)
      do i = 1, n(1)
        u(i, j) = number(first, i, j)
        v(i, j) = number(first, i, j)
      end do
    end do
  end subroutine

  !> A grid of three dimensions on a communicator of two, which leaves one of them whole.
  subroutine columns_and_check()
    type(halo_grid) :: columns
    integer, allocatable, target :: u(:, :, :)
    integer :: first(3), n(3), i, j, k
    call columns%create_cartesian(cartesian(), [cells(1), 5, cells(2)], axes=[1, 0, 2], periodic=[.false., .true., .false.])
    n = columns%shape()
    first = columns%first()
    allocate (u(0:n(1) + 1, 0:n(2) + 1, 0:n(3) + 1), source=-1)
    do k = 1, n(3)
      do j = 1, n(2)
        do i = 1, n(1)
          u(i, j, k) = 10000*j + number([first(1), first(3)], i, k)
        end do
      end do
    end do
    call halo%add(u)
    call halo%open(columns, strategy='ordered/p2p')
    call halo%run()
    call expect(n(2) == 5, 'columns are whole')
    do k = 0, n(3) + 1
      do j = 0, n(2) + 1
        do i = 0, n(1) + 1
          call expect(u(i, j, k) == 10000*(1 + modulo(j - 1, 5)) + number([first(1), first(3)], i, k), 'columns')
        end do
      end do
    end do
    call halo%free()
    call columns%create_cartesian(cartesian(), [cells(1), 5, cells(2)], stat=stat, errmsg=text)
    call expect_refusal('no dimension 2')
  end subroutine

  !> Sums of ones and of twos; what one rank passes wrongly fails on all.
  subroutine sum_and_check()
    real(8), allocatable, target :: one(:, :)
    real(4), allocatable, target :: node(:, :)
    complex(8), allocatable, target :: wave(:, :, :)
    integer, allocatable, target :: count(:, :)
    real(8) :: total
    integer :: n(2), layers
    n = grid%shape()
    allocate (one(0:n(1) + 1, 0:n(2) + 1), source=7d0)
    allocate (node(n(1) + 1, n(2) + 1), source=2.0)
    allocate (wave(3, n(1), n(2)), source=(3d0, 4d0))
    allocate (count(n(1), n(2)), source=1)
    one(1:n(1), 1:n(2)) = 1
    call expect(nint(grid%sum(one, halo=1)) == product(cells), 'sum')
    call expect(nint(grid%sum(node, centring=halo_node)) == 2*product(cells), 'sum of nodes')
    total = grid%sum(node, stat=stat, errmsg=text)  ! or cells with a layer too many
    call expect_refusal('points in dimension 1')
    call expect(nint(grid%dot(one, one, low=[1, 1], high=[1, 1])) == product(cells), 'inner product')
    call expect(abs(grid%norm(wave, dims=2)**2 - 75*product(cells)) < 1d-6, 'norm')
    total = grid%sum(count, stat=stat, errmsg=text)
    call expect_refusal('reals of 4 or 8 bytes')
    layers = merge(0, 1, own_rank() == 0)
    total = grid%sum(one, halo=layers, stat=stat, errmsg=text)
    call expect_refusal('points in dimension 1')
    total = grid%norm(wave, stat=stat, errmsg=text)
    call expect_refusal('an array of 3 dimensions')
  end subroutine

  !> Two blocks of columns a rank move to one rank and back, and through a file.
  subroutine move_blocks_and_check()
    type(halo_grid) :: tiles, whole, other
    type(halo_redistribution) :: move
    real(8), allocatable, target :: u(:, :), v(:, :), all_of_u(:, :)
    integer :: low(2, 2), high(2, 2), n(2), i, j, width
    real(8) :: total
    character(64) :: path
    width = 3
    low(:, 1) = [1, 1 + width*own_rank()]
    low(:, 2) = [1, 1 + width*(2*rank_count() - 1 - own_rank())]
    high = low + spread([3, width - 1], 2, 2)
    call tiles%create_of_blocks(world(), [4, 2*width*rank_count()], low, high)
    call whole%create(world(), [4, 2*width*rank_count()], active_ranks=1)
    allocate (u(0:5, 0:width + 1), v(0:5, 0:width + 1), source=-1d0)
    do j = 1, width
      do i = 1, 4
        u(i, j) = 10*(low(2, 1) + j - 1) + i
        v(i, j) = 10*(low(2, 2) + j - 1) + i
      end do
    end do
    n = whole%shape()
    allocate (all_of_u(n(1), n(2)), source=0d0)
    call move%add_source(u)
    call move%add_source(v)
    call move%add_target(all_of_u, halo=0)
    call move%open(tiles, whole)
    call move%run()
    do j = 1, n(2)
      call expect(all(nint(all_of_u(:, j)) == 10*j + [1, 2, 3, 4]), 'gathered tiles')
    end do
    call move%free()
    call halo%add(u)
    call halo%add(v)
    call halo%open(tiles, strategy='ordered/p2p')
    total = tiles%sum_field(halo, 1)
    path = 'tiles-of-fortran.npy'
    call tiles%write_field(halo, 1, path)
    u = 0
    v = 0
    call tiles%read_field(halo, 1, path, stat=stat, errmsg=text)
    call expect(stat == 0 .and. abs(tiles%sum_field(halo, 1) - total) < 1d-9, 'read tiles: '//trim(text))
    call expect(nint(v(4, 1)) == 10*low(2, 2) + 4, 'the second tile')
    v = 0
    call tiles%read_field(halo, 1, path, offset=128, stat=stat, errmsg=text)
    call expect(stat == 0 .and. nint(v(4, 1)) == 10*low(2, 2) + 4, 'points after a header: '//trim(text))
    call tiles%write_field(halo, 1, path, offset=128_8, stat=stat, errmsg=text)
    call expect(stat == 0, 'points written after a header: '//trim(text))
    call tiles%read_field(halo, 1, path, offset=129, stat=stat, errmsg=text)
    call expect_refusal('from byte 129 of file')
    call tiles%write_field(halo, 1, path, offset='128', stat=stat, errmsg=text)
    call expect_refusal("argument 'offset' is not of type integer")
    total = tiles%sum(u, stat=stat, errmsg=text)
    call expect_refusal('several blocks a rank')
    high(2, 1) = high(2, 1) - 1  ! other blocks of the same grid, where this is the first rank
    low(2, 2) = low(2, 2) - 1
    if (rank_count() == 1) then
      call other%create_of_blocks(world(), [4, 2*width], low, high)
      total = other%sum_field(halo, 1, stat=stat, errmsg=text)
      call expect_refusal('points in dimension 2')
      call other%read_field(halo, 1, path, stat=stat, errmsg=text)
      call expect_refusal('points in dimension 2')
      call other%free()
    end if
    call halo%free()
    call move%add_source(u)
    call move%add_target(all_of_u, halo=0)
    call move%open(tiles, whole, stat=stat, errmsg=text)
    call expect_refusal('an exchange got 1 arrays for 2 blocks')
    call tiles%free()
    call whole%free()
    if (own_rank() == 0) open (newunit=i, file=path)
    if (own_rank() == 0) close (i, status='delete')
  end subroutine

  !> Accumulates: with 1 everywhere a point gets the number of halos that hold it.
  subroutine accumulate_and_check()
    complex(8), allocatable, target :: wave(:, :, :)
    integer(2), allocatable, target :: count(:, :)
    logical, allocatable, target :: flag(:, :)
    integer :: n(2), i, j, copies
    n = grid%shape()
    allocate (wave(2, 0:n(1) + 1, 0:n(2) + 1), source=(1._8, -2._8))
    allocate (count(0:n(1) + 1, 0:n(2) + 1), source=1_2)
    allocate (flag(0:n(1) + 1, 0:n(2) + 1), source=.true.)
    call halo%add(wave, dims=2)
    call halo%add(count)
    call halo%open(grid, strategy='ordered/p2p')
    call halo%start_accumulate()
    call halo%finish()
    call halo%accumulate()  ! nothing more: the halos are clear
    do j = 0, n(2) + 1
      do i = 0, n(1) + 1
        copies = (1 + merge(1, 0, i == 1) + merge(1, 0, i == n(1)))*(1 + merge(1, 0, j == 1) + merge(1, 0, j == n(2)))
        if (i < 1 .or. i > n(1) .or. j < 1 .or. j > n(2)) copies = 0
        call expect(all(wave(:, i, j) == copies*(1d0, -2d0)), 'accumulated components')
        call expect(count(i, j) == copies, 'accumulated count')
      end do
    end do
    call halo%free()
    call halo%add(flag)
    call halo%open(grid, strategy='ordered/p2p')
    call halo%accumulate(stat=stat, errmsg=text)
    call expect_refusal('number_bytes')
    call halo%free()
  end subroutine

  !> An array in the memory of an imitated device, which the host can read, between works of its stream.
  subroutine exchange_on_device_and_check()
    real(8), pointer :: u(:, :), field(:, :)
    type(c_ptr) :: memory, stream
    integer :: first(2), n(2), i, j
    first = grid%first()
    n = grid%shape()
    stat = hs_imitated_allocate(8_c_int64_t*(n(1) + 2)*(n(2) + 2), 0_c_int32_t, memory)
    call expect(stat == 0, 'memory of a device')
    stat = hs_imitated_make_stream(0_c_int32_t, stream)
    call expect(stat == 0, 'stream of a device')
    call c_f_pointer(memory, field, [n(1) + 2, n(2) + 2])
    u(0:, 0:) => field
    do j = 1, n(2)
      do i = 1, n(1)
        u(i, j) = number(first, i, j)
      end do
    end do
    call halo%add(u, halo=1)
    call halo%open(grid, strategy='ordered/p2p', stat=stat, errmsg=text)
    call expect_refusal("memory of device 0 of back end 'host'")
    call halo%add(u, halo=1)
    call halo%open(grid)
    call halo%start(stream=stream)
    call halo%finish(stream=stream)
    call halo%run(stream=stream)
    stat = hs_imitated_finish(stream)
    call expect(stat == 0, 'end of a stream')
    do j = 0, n(2) + 1
      do i = 0, n(1) + 1
        call expect(nint(u(i, j)) == number(first, i, j), 'u on a device')
      end do
    end do
    u = 1
    call halo%start_accumulate(stream=stream)
    call halo%finish(stream=stream)
    call halo%accumulate(stream=stream)  ! nothing more: the halos are clear
    call halo%changed(stream=stream)  ! nothing without a guard
    call halo%check_clean(stream=stream)
    stat = hs_imitated_finish(stream)
    call expect(stat == 0, 'end of a stream')
    do j = 1, n(2)
      do i = 1, n(1)
        call expect(nint(u(i, j)) == merge(1, 0, i == 1) + merge(1, 0, i == n(1)) + 1 &
                    + (merge(1, 0, j == 1) + merge(1, 0, j == n(2)))*(1 + merge(1, 0, i == 1) + merge(1, 0, i == n(1))), &
                    'accumulated on a device')
      end do
    end do
    call expect(index(halo%report(), 'direct:merged/auto-device') == 1, halo%report())
    call halo%free()
    stat = hs_imitated_free_stream(stream)
    stat = hs_imitated_release(memory)
  end subroutine

  !> A forgotten exchange is named, and found.
  subroutine guard_and_check()
    real(8), allocatable, target :: u(:, :)
    integer :: n(2)
    n = grid%shape()
    allocate (u(0:n(1) + 1, 0:n(2) + 1), source=1._8)
    call halo%add(u)
    call halo%open(grid, strategy='ordered/p2p', guard=.true.)
    call halo%run()
    call halo%require_fresh(1)
    call halo%changed(fresh=1)
    call halo%require_fresh(1)
    call halo%changed()
    call halo%require_fresh(1, stat=stat, errmsg=text)
    call expect_refusal('stale on the low side in x')
    call halo%check_clean()
    u(1, 1) = u(1, 1) + u(1, 0)
    call halo%check_clean(stat=stat, errmsg=text)
    call expect_refusal('the low side in y')
    call halo%free()
  end subroutine

  !> Each slot has halos of its own: a change of the second one leaves the first one fresh.
  subroutine guard_slots_and_check()
    real(8), allocatable, target :: u(:, :, :)
    integer :: n(2), slot
    n = grid%shape()
    allocate (u(0:n(1) + 1, 0:n(2) + 1, 2), source=1._8)
    call halo%add(u(:, :, 1))
    call halo%add_slot(u(:, :, 2))
    call halo%open(grid, strategy='ordered/p2p', guard=.true.)
    do slot = 1, 2
      call halo%run(slot)
    end do
    call halo%changed(slot=2)
    call expect(all(u(:, :, 1) == 1), 'the first slot stays as it is')
    call halo%require_fresh(1)
    call halo%require_fresh(1, slot=1)
    call halo%require_fresh(1, slot=2, stat=stat, errmsg=text)
    call expect_refusal('stale on the low side in x')
    u(2, 1, 2) = u(2, 1, 2) + u(2, 0, 2)
    call halo%check_clean()
    call halo%check_clean(slot=1)
    call halo%check_clean(slot=2, stat=stat, errmsg=text)
    call expect_refusal('own point (1, 0)')
    call expect(index(text, 'in slot 1 ') > 0 .and. index(text, 'the low side in y') > 0, trim(text))
    call halo%run(2)
    call halo%changed(fresh=1, slot=2)
    call halo%require_fresh(1, slot=2)
    call check_refused_slots_of_guard()
    call halo%free()
    call halo%changed(stat=stat, errmsg=text)
    call expect_refusal('not open')
  end subroutine

  !> A slot that does not exist, on rank 0 alone in the call that is collective.
  subroutine check_refused_slots_of_guard()
    call halo%changed(slot=3, stat=stat, errmsg=text)
    call expect_refusal('no slot 3')
    call halo%require_fresh(1, slot=0, stat=stat, errmsg=text)
    call expect_refusal('no slot 0')
    call halo%check_clean(slot=merge(3, 1, own_rank() == 0), stat=stat, errmsg=text)
    call expect_refusal('no slot 3')
    call expect(own_rank() == 0 .or. index(text, 'rank 0: ') == 1, trim(text))
  end subroutine

  subroutine check_refusals()
    real(8), allocatable, target :: u(:, :), line(:)
    integer :: n(2)
    type(halo_grid) :: other
    n = grid%shape()
    allocate (u(n(1) + 2, n(2) + 2), line(n(1) + 2))
    call halo%add(u, halo=2)
    call refuse_to_open('and its halo of 2')
    call halo%add(line)
    call refuse_to_open('grid of 2')
    call halo%add(line, dims=2)
    call refuse_to_open('rank 1')
    call halo%add(u)
    call halo%open(grid, strategy='ordered/p2q', stat=stat, errmsg=text)
    call expect_refusal('p2p')
    call refuse_to_open('at least one')
    call check_refused_slots(u)
    call halo%run(stat=stat, errmsg=text)
    call expect_refusal('not open')
    call other%create(world(), [1, 1], stat=stat, errmsg=text, active_ranks=99)
    call expect_refusal('active_ranks is 99')
    call other%create(world(), [1, 1])
    call expect(all(other%shape() == merge(1, 0, own_rank() == 0)), 'one cell')
    call other%free()
  end subroutine

  subroutine check_refused_slots(u)
    real(8), intent(inout), target :: u(:, :)
    real(8), allocatable, target :: v(:, :), narrow(:, :), wide(:, :)
    allocate (v, source=u)
    allocate (narrow(size(u, 1) - 1, size(u, 2)), wide(2*size(u, 1), size(u, 2)))
    call halo%add_slot(u)
    call refuse_to_open('by add()')
    call halo%add(u)
    call halo%add_slot(narrow)
    call refuse_to_open('pass one of the same')
    call halo%add(u)
    call halo%add_slot(wide(1::2, :))
    call refuse_to_open('pass one of the same')
    call halo%add(u)
    call halo%add_slot(v)
    call halo%add(wide(1::2, :))
    call refuse_to_open('array 2 has 1 slots and array 1 has 2')
    call halo%rebind(u, stat=stat, errmsg=text)
    call expect_refusal('not open')
    call halo%add(u)
    call halo%open(grid)
    call halo%rebind(v, number=2, stat=stat, errmsg=text)
    call expect_refusal('no array 2')
    call check_refusals_of_one_rank(v, narrow)
    call halo%rebind(v, slot=2, stat=stat, errmsg=text)
    call expect_refusal('no slot 2')
    call halo%rebind(narrow, stat=stat, errmsg=text)
    call expect_refusal('pass one of the same')
    call halo%run(slot=2, stat=stat, errmsg=text)
    call expect_refusal('no slot 2')
    call halo%start(slot=0, stat=stat, errmsg=text)
    call expect_refusal('no slot 0')
    call halo%free()
  end subroutine

  !> An impossible request of one rank in a collective call fails on all of them.
  subroutine check_refusals_of_one_rank(u, narrow)
    real(8), intent(inout), target :: u(:, :), narrow(:, :)
    type(halo_exchange) :: near, copy
    integer :: slot
    logical :: first
    first = own_rank() == 0
    slot = merge(7, 1, first)
    call near%add(u)
    call near%open(grid, strategy='direct/neighbor')  ! whose neighbours store the addresses of arrays
    call near%accumulate(slot=slot, stat=stat, errmsg=text)
    call expect(stat == 2 .and. index(text, 'no slot 7') > 0 .and. (first .or. index(text, 'rank 0: ') == 1), trim(text))
    call near%rebind(u, slot=slot, stat=stat, errmsg=text)
    call expect(stat == 2 .and. index(text, 'no slot 7') > 0 .and. (first .or. index(text, 'rank 0: ') == 1), trim(text))
    if (first) call near%rebind(narrow, stat=stat, errmsg=text)
    if (.not. first) call near%rebind(u, stat=stat, errmsg=text)
    call expect(stat == 2 .and. index(text, 'pass one of the same') > 0 .and. (first .or. index(text, 'rank 0: ') == 1), trim(text))
    call near%rebind(u)
    copy = near
    call near%free()
    call copy%run(stat=stat, errmsg=text)
    call expect_refusal('freed before')
  end subroutine
end program
