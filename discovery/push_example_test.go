package discovery_test

import (
	"fmt"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
)

type board struct {
	mu       sync.Mutex
	machines []string
	watchers map[chan struct{}]bool
}

func (b *board) put(machines ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.machines = machines
	for news := range b.watchers {
		select {
		case news <- struct{}{}:
		default: // the watcher has a pending wake-up
		}
	}
}

func (b *board) watch() (news chan struct{}, end func()) {
	news = make(chan struct{}, 1)
	news <- struct{}{}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watchers[news] = true
	return news, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watchers, news)
	}
}

func (b *board) answer() discovery.Answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all discovery.Locality
	for _, m := range b.machines {
		all.Endpoints = append(all.Endpoints, discovery.Endpoint{Addresses: []string{m}})
	}
	return discovery.Answer{
		Priorities: []discovery.Priority{{Localities: []discovery.Locality{all}}},
		Identity:   fmt.Sprint(b.machines),
	}
}

type watched struct{ *board }

func (watched) Check(bool) error { return nil }

func (w watched) Start(r *discovery.Receiver) (discovery.Started, error) {
	r.Trying("waiting for the board")
	done := make(chan struct{})
	go func() {
		news, end := w.watch()
		defer end()
		for {
			select {
			case <-done:
				return
			case <-news:
				_ = r.Update(w.answer()) // a refused answer is logged; the next change brings another one
			}
		}
	}()
	return discovery.Started{Close: func() { close(done) }}, nil
}

// All channels of the process share this source, which pushes its answers. It is closed with the
// last channel that uses it; a source that is expensive to start can stay open for some seconds
// more. A program registers it in an init function.
func ExampleShared() {
	old, fresh := startBackend("the old machine"), startBackend("the new one")
	defer fresh.Stop()
	b := &board{watchers: make(map[chan struct{}]bool)}
	b.put(old.address)
	discovery.Register("board", func(t *discovery.Target) ([]discovery.Mechanism, error) {
		return []discovery.Mechanism{{Source: discovery.Shared(b, 0, watched{b})}}, nil
	})
	conn, err := understudy.NewClient("board:///checkout", understudy.Recommended(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println("answered by", old.caller(conn))
	b.put(fresh.address)
	fmt.Println("answered by", fresh.caller(conn))
	old.Stop()
	// Output:
	// answered by the old machine
	// answered by the new one
}
