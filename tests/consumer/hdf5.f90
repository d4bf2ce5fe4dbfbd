! The program of hdf5.c in Fortran: a restart in HDF5 by its serial library. usage: hdf5 FILE
program restart
  use, intrinsic :: iso_c_binding
  use hdf5
  use haloscope
  implicit none

  interface
    include 'mpi_for_fortran.inc'
  end interface

  integer, parameter :: cells(2) = [7, 11]
  type(halo_grid) :: grid
  real(8), allocatable, target :: u(:, :)
  real(8) :: all_of_u(7, 11)
  character(256) :: path
  integer(haddr_t) :: offset
  integer :: first(2), n(2), i, j
  logical :: right

  call begin_mpi()
  call get_command_argument(1, path)
  call grid%create(world(), cells)
  first = grid%first()
  n = grid%shape()
  allocate (u(n(1), n(2)))
  do concurrent(i=1:n(1), j=1:n(2))
    u(i, j) = number_of(i, j)
  end do
  if (own_rank() == 0) offset = offset_of_dataset(.true.)
  call meet()
  if (own_rank() /= 0) offset = offset_of_dataset(.false.)
  call meet()
  call grid%write(u, trim(path), halo=0, offset=offset)

  u = -1
  call grid%read(u, trim(path), halo=0, offset=offset)
  right = all([((abs(u(i, j) - number_of(i, j)) < 0.5, i=1, n(1)), j=1, n(2))])
  call read_by_hdf5()
  right = right .and. all([((nint(all_of_u(i, j)) == i + 10*j, i=1, 7), j=1, 11)])
  if (right) print '(a, i0, a)', 'rank ', own_rank(), ': right'
  call grid%free()
  call end_mpi()

contains

  pure real(8) function number_of(i, j)
    integer, intent(in) :: i, j
    number_of = first(1) + i - 1 + 10*(first(2) + j - 1)
  end function

  !> Returns the byte at which the dataset begins, which it creates if it is to.
  integer(haddr_t) function offset_of_dataset(create) result(offset)
    logical, intent(in) :: create
    integer(hid_t) :: file, space, how, set
    integer :: error
    call h5open_f(error)
    if (create) then
      call h5fcreate_f(trim(path), H5F_ACC_TRUNC_F, file, error)
      call h5screate_simple_f(2, int(cells, hsize_t), space, error)
      call h5pcreate_f(H5P_DATASET_CREATE_F, how, error)
      call h5pset_alloc_time_f(how, H5D_ALLOC_TIME_EARLY_F, error)
      call h5dcreate_f(file, 'u', H5T_NATIVE_DOUBLE, space, set, error, how)
    else
      call h5fopen_f(trim(path), H5F_ACC_RDONLY_F, file, error)
      call h5dopen_f(file, 'u', set, error)
    end if
    call h5dget_offset_f(set, offset, error)
    call h5dclose_f(set, error)
    call h5fclose_f(file, error)
  end function

  subroutine read_by_hdf5()
    integer(hid_t) :: file, set
    integer :: error
    call h5fopen_f(trim(path), H5F_ACC_RDONLY_F, file, error)
    call h5dopen_f(file, 'u', set, error)
    call h5dread_f(set, H5T_NATIVE_DOUBLE, all_of_u, int(cells, hsize_t), error)
    call h5dclose_f(set, error)
    call h5fclose_f(file, error)
  end subroutine

end program
