package shell

import (
	"fmt"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Ended returns how a call ended. If conclusive is true, the code tells us something about the
// server. For that, the call must have reached the server. With most codes, some bytes must have
// come back as well, because the client may have made up the code itself, e.g. if a message is too
// large. The exceptions are codes that we also get if the server hangs or the connection is lost.
// info is a pointer because copying it would cost more than everything we do here.
func Ended(info *balancer.DoneInfo) (code codes.Code, conclusive bool) {
	if info.Err != nil {
		code = status.Code(info.Err)
	}
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.DataLoss:
		return code, info.BytesSent
	}
	return code, info.BytesSent && info.BytesReceived
}

// Judged is the error of a call that we want outlier detection to see differently. Pages show the
// real one.
type Judged struct {
	Real    error
	Seen    error
	Nothing bool // says nothing about the endpoint; Seen is nil
}

func (j *Judged) Error() string { return fmt.Sprint(j.Real) }

func Judge(info *balancer.DoneInfo) {
	if j, ok := info.Err.(*Judged); ok { //nolint:errorlint // never wrapped
		info.Err, info.BytesReceived = j.Seen, info.BytesReceived && !j.Nothing
	}
}

// Then chains two Done functions, either of which may be nil.
func Then(first, then func(balancer.DoneInfo)) func(balancer.DoneInfo) {
	switch {
	case first == nil:
		return then
	case then == nil:
		return first
	}
	return func(info balancer.DoneInfo) {
		first(info)
		then(info)
	}
}
