! Functions of MPI that the programs in Fortran need, by module mpi_f08 where MPI_F08 is defined, otherwise by module
! mpi. Its kinds are the modules' kinds, whatever the default ones are here.
module mpi_for_fortran
  use, intrinsic :: iso_c_binding, only: c_int
#ifdef MPI_F08
#define COMMUNICATOR type(MPI_Comm)
#define NUMBER(comm) comm%mpi_val
  use mpi_f08
#else
#define COMMUNICATOR integer(k)
#define NUMBER(comm) comm
  use mpi
#endif
  implicit none

  integer, parameter :: k = kind(NUMBER(MPI_COMM_WORLD))
  COMMUNICATOR, save :: cart, plane
  logical, save :: has_cart = .false., has_plane = .false.
  integer(k) :: error

contains

  subroutine begin_mpi() bind(c)
    call MPI_Init(error)
  end subroutine

  integer(c_int) function world() bind(c)
    world = NUMBER(MPI_COMM_WORLD)
  end function

  integer(c_int) function own_rank() bind(c)
    integer(k) :: rank
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    own_rank = rank
  end function

  integer(c_int) function rank_count() bind(c)
    integer(k) :: ranks
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    rank_count = ranks
  end function

  subroutine meet() bind(c)
    call MPI_Barrier(MPI_COMM_WORLD, error)
  end subroutine

  !> A Cartesian communicator, the only one at a time. ranks, wrap  per dimension.
  integer(c_int) function cartesian_of(dims, ranks, wrap) bind(c)
    integer(c_int), value :: dims
    integer(c_int), intent(in) :: ranks(dims), wrap(dims)
    call free_cartesian()
    call MPI_Cart_create(MPI_COMM_WORLD, dims, ranks, logical(wrap /= 0, k), .false._k, cart, error)
    has_cart = .true.
    cartesian_of = NUMBER(cart)
  end function

  !> A periodic one of two dimensions, the same for all grids, which use it until the end.
  integer(c_int) function cartesian() bind(c)
    integer(k) :: ranks(2)
    if (.not. has_plane) then
      ranks = 0
      call MPI_Dims_create(rank_count(), 2_k, ranks, error)
      call MPI_Cart_create(MPI_COMM_WORLD, 2_k, ranks, [.true._k, .true._k], .false._k, plane, error)
      has_plane = .true.
    end if
    cartesian = NUMBER(plane)
  end function

  subroutine end_mpi() bind(c)
    call free_cartesian()
    if (has_plane) call MPI_Comm_free(plane, error)
    call MPI_Finalize(error)
  end subroutine

  subroutine free_cartesian()
    if (has_cart) call MPI_Comm_free(cart, error)
    has_cart = .false.
  end subroutine
end module
