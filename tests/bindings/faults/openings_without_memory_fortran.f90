! The openings of openings_without_memory_fortran, through the Fortran module. Its arrays are of constant size: they
! take no memory from the system.
subroutine open_by_binding(comm, strategy, text) bind(c)
  use, intrinsic :: iso_c_binding
  use haloscope
  implicit none
  interface
    integer(c_int) function on_any_rank(comm, here) bind(c)
      import :: c_int
      integer(c_int), value :: comm, here
    end function
    integer(c_size_t) function strlen(text) bind(c)
      import :: c_size_t, c_char
      character(kind=c_char), intent(in) :: text(*)
    end function
  end interface
  integer(c_int), value :: comm
  character(kind=c_char), intent(in) :: strategy(*)
  character(kind=c_char), intent(inout) :: text(1000)

  integer, parameter :: cells(2) = [10, 12]
  character(100) :: name
  character(980) :: error
  type(halo_grid) :: grid
  type(halo_exchange) :: halo
  real(8), target :: u(0:11, 0:13), next(0:11, 0:13), other(0:11, 0:13)
  integer :: n(2), first(2), i, stat, freed
  logical :: right

  name = ''
  do i = 1, int(strlen(strategy))
    name(i:i) = strategy(i)
  end do
  right = .true.
  error = ''
  call exchange_on()
  if (stat /= 0) then
    call give('refused: '//error)
  else
    call give(merge('right', 'wrong', right))
  end if
  call halo%free(stat=freed, errmsg=error)
  if (freed /= 0) call give('cannot be freed: '//error)
  call grid%free(stat=freed, errmsg=error)
  if (freed /= 0) call give('cannot be freed: '//error)

contains

  subroutine exchange_on()
    integer :: step
    call grid%create(comm, cells, periodic=[.true., .true.], nodes=[0, 0], process_grid='2x1', stat=stat, errmsg=error)
    if (stat /= 0) return
    n = grid%shape()
    first = grid%first()
    call halo%add(u(0:n(1) + 1, :), halo=1)
    call halo%add_slot(next(0:n(1) + 1, :))
    call halo%open(grid, strategy=trim(name), stat=stat, errmsg=error)
    if (stat /= 0) return
    do step = 1, 3
      call fill(u)
      call halo%run(stat=stat, errmsg=error)
      if (stat /= 0) return
      call look_at(u)
    end do
    call halo%accumulate(stat=stat, errmsg=error)
    if (stat /= 0) return
    call halo%rebind(other(0:n(1) + 1, :), slot=1, stat=stat, errmsg=error)
    if (stat /= 0) return
    call report()
  end subroutine

  !> A report is made by each rank alone.
  subroutine report()
    integer :: empty
    empty = merge(1, 0, len(halo%report(stat=stat, errmsg=error)) == 0)
    if (on_any_rank(comm, merge(1, 0, stat /= 0)) == 0) then
      right = right .and. empty == 0
    else if (stat == 0) then
      stat = 1
      error = 'the report of another rank failed'
    end if
  end subroutine

  subroutine fill(array)
    real(8), intent(inout) :: array(0:, 0:)
    integer :: x, y
    do y = 1, n(2)
      do x = 1, n(1)
        array(x, y) = number(x, y)
      end do
    end do
  end subroutine

  subroutine look_at(array)
    real(8), intent(in) :: array(0:, 0:)
    integer :: x, y
    do y = 0, n(2) + 1
      do x = 0, n(1) + 1
        right = right .and. nint(array(x, y)) == number(x, y)
      end do
    end do
  end subroutine

  !> The global number of the cell at local (x, y), from 1, periodic.
  pure integer function number(x, y)
    integer, intent(in) :: x, y
    number = modulo(first(1) + x - 2, cells(1)) + 100*modulo(first(2) + y - 2, cells(2))
  end function

  subroutine give(words)
    character(*), intent(in) :: words
    integer :: letter
    do letter = 1, len_trim(words)
      text(letter) = words(letter:letter)
    end do
    text(len_trim(words) + 1) = c_null_char
  end subroutine
end subroutine
