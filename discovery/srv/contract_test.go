package srv

import (
	"errors"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/sourcetest"
)

func TestSourceContract(t *testing.T) {
	for about, n := range map[string]func() *nameServer{
		"well":   func() *nameServer { return &nameServer{} },
		"broken": func() *nameServer { return &nameServer{err: errors.New("no such host")} },
		"silent": func() *nameServer { return &nameServer{latency: time.Hour} },
	} {
		for _, every := range []time.Duration{0, 30 * time.Second} {
			t.Run(about+" "+every.String(), func(t *testing.T) {
				sourcetest.Run(t, func(*testing.T) discovery.Source {
					return source{"_grpc._tcp.x", n(), discovery.Refresh{Every: every, RemoveAfter: 2}, ""}
				})
			})
		}
	}
}
