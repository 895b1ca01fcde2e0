package shell

import (
	"errors"
	"strings"
)

// What gRPC says of an attempt to connect begins with this.
const (
	transportPrefix = `connection error: desc = "transport: Error while dialing: `
	otherPrefix     = `connection error: desc = "`
)

// Brief returns an error without what is said elsewhere, or says nothing:
//
//	all 3 endpoints failed, the last with: connection error: desc = "transport: Error
//	while dialing: dial tcp 10.0.0.1:443: connect: connection refused"
//	->  connection refused by 10.0.0.1:443
func Brief(err error) string {
	if all, ok := errors.AsType[*AllFailed](err); ok {
		err = all.Last
	}
	text := err.Error()
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		text = "refused its update: " + refusal.Unwrap().Error()
	}
	for _, prefix := range []string{transportPrefix, otherPrefix} {
		if rest, ok := strings.CutPrefix(text, prefix); ok && strings.HasSuffix(rest, `"`) {
			text = strings.TrimSuffix(rest, `"`)
			break
		}
	}
	for _, prefix := range []string{"weighted_round_robin: ", "weighted_target: ", "pick_first: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	if _, health, ok := strings.Cut(text, "health check failed. status="); ok {
		text = "the health check says " + health
	}
	const refused = ": connect: connection refused"
	if dial, ok := strings.CutSuffix(text, refused); ok && strings.HasPrefix(dial, "dial ") {
		text = "connection refused by " + dial[strings.LastIndex(dial, " ")+1:]
	}
	return text
}
