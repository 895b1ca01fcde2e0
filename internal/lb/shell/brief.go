package shell

import (
	"errors"
	"strings"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// Brief returns a short text for err:
//
//	all 3 endpoints failed, one of them with: connection error: desc = "transport: Error
//	while dialing: dial tcp 10.0.0.1:443: connect: connection refused"
//	->  connection refused by 10.0.0.1:443
func Brief(err error) string {
	if all, ok := errors.AsType[*AllFailed](err); ok {
		err = all.Example
	}
	text := err.Error()
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		text = "refused its update: " + refusal.Unwrap().Error()
	}
	for _, prefix := range []string{"weighted_round_robin: ", "weighted_target: ", "pick_first: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	text = printable.Brief(text)
	if _, health, ok := strings.Cut(text, "health check failed. status="); ok {
		text = "the health check says " + health
	}
	return text
}
