// Package linux has the system calls that scaler makes and Linux alone has. On other systems all of them return
// errors.ErrUnsupported or nothing: scaler is built there to read records, and its commands that start programs refuse.
package linux
