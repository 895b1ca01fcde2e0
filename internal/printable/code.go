package printable

import (
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
)

// Code returns a code as gRPC's documents write it: DEADLINE_EXCEEDED.
func Code(c codes.Code) string {
	return code.Code(c).String() //nolint:gosec // codes are small, and others a number
}
