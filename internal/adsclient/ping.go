package adsclient

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/keepalive"
)

// pingHeader is the header of a stream by which a server, such as serve of understudy, says
// that it allows a ping every 30 s.
const (
	pingHeader = "understudy-ping"
	pingValue  = "30s"
)

// Clients notice by pings a server that is gone without a word. Servers allow one every 5
// minutes, unless they are told otherwise.
var (
	seldomPings = keepalive.ClientParameters{Time: 5 * time.Minute, Timeout: 20 * time.Second}
	oftenPings  = keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}
)

// pinging is how a client pings, which is settled when a connection is made. It is touched by
// the goroutine that runs the streams.
type pinging struct {
	often   bool
	refused bool // a server did not allow it after another did: never again
}

var errPings = errors.New("renewed, to ping as often as the server allows")

func (p *pinging) parameters() keepalive.ClientParameters {
	if p.often {
		return oftenPings
	}
	return seldomPings
}

// heed takes note of what a server says of pings, by the headers of a stream that it answered,
// and has the stream renewed where the connection is to be another: after 1 to 5 minutes at random,
// so that a server's clients do not come back at once, or now where the server would end it.
func (p *pinging) heed(ctx context.Context, headers []string, renew func(error)) {
	allows := len(headers) == 1 && headers[0] == pingValue
	switch {
	case p.often && !allows:
		p.often, p.refused = false, true
		renew(errPings)
	case !p.often && allows && !p.refused:
		p.often = true
		timer := time.AfterFunc(time.Minute+rand.N(4*time.Minute), func() { renew(errPings) })
		context.AfterFunc(ctx, func() { timer.Stop() })
	}
}
