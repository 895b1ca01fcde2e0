package shell

import (
	"fmt"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Ended reads how a call ended. If conclusive is true, the code says something about the server:
// the call has reached it, and either bytes came back, or the code is one that also occurs when the
// server hangs or the connection is lost. The client itself ends calls with any other code, for
// example if a message is too large. info is a pointer, as a copy would cost more than the reading.
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

// Judged is the error of a call that outlier detection must see in another way than it ended. A
// page shows how it ended.
type Judged struct {
	Real    error
	Seen    error
	Nothing bool // it says nothing of the endpoint; Seen is nil
}

func (j *Judged) Error() string { return fmt.Sprint(j.Real) }

// Judge turns info into what outlier detection sees of the end of a call.
func Judge(info *balancer.DoneInfo) {
	if j, ok := info.Err.(*Judged); ok { //nolint:errorlint // never wrapped
		info.Err, info.BytesReceived = j.Seen, info.BytesReceived && !j.Nothing
	}
}

// Then runs first, and then another Done function. Both may be nil.
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
