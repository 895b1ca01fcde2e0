package adsclient

import (
	"context"

	"github.com/understudy-lb/understudy/internal/ads"
)

// mailbox holds the request to be sent next. A newer one replaces one that was not sent.
// Nothing is lost by that, for each names everything that is wanted and answers the last
// response. So memory stays bounded whatever a server does.
type mailbox struct{ slot chan *ads.Request }

func newMailbox() *mailbox { return &mailbox{make(chan *ads.Request, 1)} }

// put is called by one goroutine at a time.
func (m *mailbox) put(r *ads.Request) {
	select {
	case unsent := <-m.slot:
		r = r.Replacing(unsent)
	default:
	}
	m.slot <- r
}

// mailboxes are those of a stream, one for each topic of its client.
type mailboxes [2]*mailbox

func newMailboxes() mailboxes { return mailboxes{newMailbox(), newMailbox()} }

// take returns the next request and the number of its topic, or nil when ctx has ended.
func (m mailboxes) take(ctx context.Context) (int, *ads.Request) {
	select {
	case r := <-m[0].slot:
		return 0, r
	case r := <-m[1].slot:
		return 1, r
	case <-ctx.Done():
		return 0, nil
	}
}
