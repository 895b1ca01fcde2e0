package e2e

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var errFinal = fmt.Errorf("theirs: %w", status.Error(codes.PermissionDenied, "go away"))

// If gRPC gets an error that wraps a status, it fails even wait-for-ready calls with this error. No
// source may give gRPC such an error. TestLeavesFailWithPlainErrors of internal/channel and others
// there say the same of policies.
func TestErrorsForGRPCHaveNoStatus(t *testing.T) {
	for name, errs := range sourceErrors {
		t.Run(name, func(t *testing.T) { checkPlain(t, errs(t)) })
	}
}

func checkPlain(t *testing.T, errs []error) {
	t.Helper()
	if len(errs) == 0 {
		t.Fatal("gRPC received no error")
	}
	for _, err := range errs {
		if s, isStatus := status.FromError(err); isStatus {
			t.Errorf("gRPC ends calls with %v: %v", s.Code(), err)
		}
	}
}
