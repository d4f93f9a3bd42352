//! Small programs that show how to use Thorp.
