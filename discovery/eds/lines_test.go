package eds

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/understudy-lb/understudy/internal/testing/adstest"
)

// If a server sends a text with line breaks and control characters, the resulting error must be a
// single line, both in the log and in calls.
func TestServerTextIsEscaped(t *testing.T) {
	const hostileText = "busy\nERROR: [understudy] forged\x1b[31m"
	for about, script := range map[string]adstest.Script{
		"a status": func(s *adstest.Stream) error {
			_, _ = s.Recv()
			return status.Error(codes.Unavailable, hostileText)
		},
		"a resource": func(s *adstest.Stream) error {
			_, _ = s.Recv()
			invalid := adstest.Cluster("c", "10.0.0.1:1", "10.0.0.1:1")
			invalid.Endpoints[0].Locality.Region = hostileText
			invalid.Endpoints[0].LbEndpoints[0].GetEndpoint().GetAddress().GetSocketAddress().Address = hostileText
			if err := s.Respond(hostileText, hostileText, invalid); err != nil {
				return err
			}
			return s.Drain()
		},
	} {
		t.Run(about, func(t *testing.T) {
			address := serve(t, script)
			c := build(t, "eds://"+address+"/c")
			err := wait(t, "an error", c.errors)
			logged.Wait(t, testTimeout, `forged\x1b[31m`)
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
