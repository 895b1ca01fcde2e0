package eds

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// A server sends an error text with line breaks and control characters. The error must be a single
// line, in the log and in calls.
func TestWhatAServerSaysStaysALine(t *testing.T) {
	const evil = "busy\nERROR: [understudy] forged\x1b[31m"
	for about, script := range map[string]adstest.Script{
		"a status": func(s *adstest.Stream) error {
			_, _ = s.Recv()
			return status.Error(codes.Unavailable, evil)
		},
		"a resource": func(s *adstest.Stream) error {
			_, _ = s.Recv()
			bad := adstest.Cluster("c", "10.0.0.1:1", "10.0.0.1:1")
			bad.Endpoints[0].Locality.Region = evil
			bad.Endpoints[0].LbEndpoints[0].GetEndpoint().GetAddress().GetSocketAddress().Address = evil
			if err := s.Respond(evil, evil, bad); err != nil {
				return err
			}
			return s.Drain()
		},
	} {
		t.Run(about, func(t *testing.T) {
			address := serve(t, script)
			c := build(t, "eds://"+address+"/c")
			err := wait(t, "an error", c.errors)
			logged.Wait(t, patience, `forged\x1b[31m`)
			for where, text := range map[string]string{"the error": err.Error(), "the log": logged.Take()} {
				for line := range strings.Lines(text) {
					if strings.HasPrefix(line, "ERROR: [understudy] forged") || strings.Contains(line, "\x1b") {
						t.Errorf("%s has the line %.200q", where, line)
					}
				}
			}
		})
	}
}
