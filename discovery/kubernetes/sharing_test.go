package kubernetes

import (
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Targets that differ only in the port, or in the endpoints that they use, must share a watch. It
// must end 30 s after the last of them has closed.
func TestTargetsThatDifferInThePortShareAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int32
		s := &scripted{}
		s.serve = func(n int, _ url.Values, w io.Writer, over <-chan struct{}) int {
			send(w, at("ADDED", "a", "10.0.0.1"), bookmark("7", true))
			time.Sleep(time.Second)
			send(w, at("MODIFIED", "a", "10.0.0.2"))
			<-over
			ended.Add(1)
			return 0
		}
		var stops []func()
		var all []*listener
		for _, q := range []query{{}, {port: "grpc"}, {port: "8080"}, {never: true}, {family: "IPv4"}, {family: "IPv6"}, {}} {
			l, stop := listen(t, s, q)
			all, stops = append(all, l), append(stops, stop)
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		late, stop := listen(t, s, query{port: "grpc", never: true})
		stops = append(stops, stop)
		if got := late.said(); got != "0s update 0/10.0.0.2:80=healthy" {
			t.Errorf("a later target received %q", got)
		}
		for i, want := range []string{"0/10.0.0.2:80=healthy", "0/10.0.0.2:80=healthy", "0/10.0.0.2:8080=healthy", "0/10.0.0.2:80=healthy", "0/10.0.0.2:80=healthy", "", "0/10.0.0.2:80=healthy"} {
			if got := flat(all[i].answer()); got != want {
				t.Errorf("target %d has the answer %s, want %s", i, got, want)
			}
		}
		if kinds, _ := s.requests(); kinds != "all" {
			t.Errorf("the requests are %s, want one watch", kinds)
		}
		other, stopOther := listen(t, s, query{services: "api"})
		_ = other
		synctest.Wait()
		if kinds, _ := s.requests(); kinds != "all all" {
			t.Errorf("with another Service the requests are %s, want two watches", kinds)
		}
		for i, stop := range append(stops, stopOther) {
			if i == len(stops)-1 {
				go stop()
				time.Sleep(linger - time.Second)
				if ended.Load() != 0 {
					t.Error("the watch ended less than 30 s after its last user")
				}
				time.Sleep(2 * time.Second)
				if ended.Load() != 1 {
					t.Error("the watch has not ended 31 s after its last user")
				}
				continue
			}
			go stop()
		}
		time.Sleep(time.Minute)
		feeds.mu.Lock()
		defer feeds.mu.Unlock()
		for of := range feeds.all {
			if of.transport == s {
				t.Errorf("the feed of %s was not removed", of.services)
			}
		}
		if feeds.hosts[server{host: "http://x", transport: s}] != nil {
			t.Error("the server was not removed")
		}
	})
}

// A channel that was idle for less than 30 s must get the known endpoints at once, without a
// request. After a longer time, it needs a new watch.
func TestAChannelThatIsIdleForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		s.serve = func(n int, _ url.Values, w io.Writer, over <-chan struct{}) int {
			send(w, at("ADDED", "a", fmt.Sprint("10.0.0.", n)), bookmark("7", true))
			return hold(over)
		}
		_, stop := listen(t, s, query{})
		synctest.Wait()
		go stop()
		time.Sleep(29 * time.Second)
		l, stop := listen(t, s, query{})
		if got := l.said(); got != "0s update 0/10.0.0.0:80=healthy" {
			t.Errorf("after 29 s it received %q", got)
		}
		go stop()
		time.Sleep(31 * time.Second)
		l, stop = listen(t, s, query{})
		if got := l.said(); got != "0s update 0/10.0.0.1:80=healthy" {
			t.Errorf("after 31 s it received %q", got)
		}
		stop()
		if kinds, _ := s.requests(); kinds != "all all" {
			t.Errorf("the requests are %s, want two watches", kinds)
		}
	})
}

// The server is unreachable. A target that starts now must get the endpoints that other targets
// have, and be notified that they are not confirmed. If there are none, it must get the failure.
func TestOneThatComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		s.serve = wellThen(func(n int, w io.Writer, ended <-chan struct{}) int {
			if n == 0 {
				return 0
			}
			return -1
		})
		down := &scripted{serve: func(int, url.Values, io.Writer, <-chan struct{}) int { return -1 }}
		_, stop := listen(t, s, query{})
		_, stopDown := listen(t, down, query{})
		time.Sleep(10 * time.Second)
		l, stopLate := listen(t, s, query{port: "grpc"})
		if got := l.said(); !strings.HasPrefix(got, "0s update 0/10.0.0.1:80=healthy\n0s doubt since -10s: connection refused") {
			t.Errorf("it received %q", got)
		}
		l, stopLateDown := listen(t, down, query{port: "grpc"})
		if got := l.said(); got != "0s fail connection refused" {
			t.Errorf("it received %q", got)
		}
		for _, stop := range []func(){stop, stopDown, stopLate, stopLateDown} {
			stop()
		}
	})
}
