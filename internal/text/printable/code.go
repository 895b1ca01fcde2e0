package printable

import (
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
)

// Code returns the name of a status code as in gRPC's documentation, e.g. DEADLINE_EXCEEDED.
func Code(c codes.Code) string {
	return code.Code(c).String() // falls back to the number
}
