package printable

import (
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
)

// Code returns the name of a status code in gRPC's documentation, such as DEADLINE_EXCEEDED.
func Code(c codes.Code) string {
	return code.Code(c).String() // formats an unknown code as a number
}
