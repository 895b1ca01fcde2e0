package childlb

import (
	"errors"

	"google.golang.org/grpc/status"
)

// Plain returns err, or, where it is or wraps a status, an error of the same text that
// hides it: gRPC, and parents that make a picker of what an update returned, take a
// status for the end of every call, also of those that wait for ready. errors.Is
// answers as for err.
func Plain(err error) error {
	if err == nil {
		return nil
	}
	if _, holds := status.FromError(err); !holds {
		return err
	}
	return plain{err}
}

// plain does not embed the error, whose methods would give the status away.
type plain struct{ err error }

func (p plain) Error() string { return p.err.Error() }

func (p plain) Is(target error) bool { return errors.Is(p.err, target) }
