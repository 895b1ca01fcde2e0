package shell

import (
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Ended reads how a call ended. The code says something about the server if conclusive is true: the
// call has reached the server, and either bytes came back, or the code is one that also occurs when
// the server hangs or the connection is lost. The client itself ends calls with any other code, for
// example if a message is too large.
func Ended(info balancer.DoneInfo) (code codes.Code, conclusive bool) {
	if info.Err != nil {
		code = status.Code(info.Err)
	}
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.DataLoss:
		return code, info.BytesSent
	}
	return code, info.BytesSent && info.BytesReceived
}

// Then returns a Done function that runs first and then another one. Both may be nil.
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
