package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/options"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		var ended error
		s := discovery.Poll(10*time.Second, func(ctx context.Context) (discovery.Answer, error) {
			asked++
			switch asked {
			case 1:
				return discovery.Answer{}, errors.New("down")
			case 4:
				<-ctx.Done()
				ended = ctx.Err()
				return discovery.Answer{}, ctx.Err()
			}
			return flat.Answer(flat.Endpoint{Address: fmt.Sprintf("10.0.0.%d:1", asked)}), nil
		})
		cc, start := &channel{}, time.Now()
		r := build(t, one(s), cc)
		synctest.Wait()
		if got, want := cc.take(), "error x: down"; got != want {
			t.Errorf("at once: channel saw %q, want %q", got, want)
		}
		// The interval is 10 s, with a jitter of 10%. The second poll is therefore due after 9 to 11 s,
		// and the third after 18 to 22 s.
		for _, at := range []struct {
			seconds float64
			want    string
		}{{8.9, ""}, {11.1, `state 10.0.0.2:1["child0" "/"]`}, {17.9, ""}, {22.1, `state 10.0.0.3:1["child0" "/"]`}} {
			<-time.After(time.Until(start.Add(time.Duration(at.seconds * float64(time.Second)))))
			if got := cc.take(); got != at.want {
				t.Errorf("after %v s: channel saw %q, want %q", at.seconds, got, at.want)
			}
		}
		<-time.After(time.Minute)
		r.Close()
		synctest.Wait()
		if asked != 4 || ended == nil || cc.take() != "" {
			t.Errorf("polled %d times, ended with %v; want no overlapping polls, and a cancelled context", asked, ended)
		}
	})
}

func TestPollWithoutAnInterval(t *testing.T) {
	ask := func(context.Context) (discovery.Answer, error) {
		t.Error("the source was polled")
		return discovery.Answer{}, nil
	}
	for _, interval := range []time.Duration{0, -time.Second} {
		b := one(discovery.Poll(interval, ask))
		for _, err := range []error{b.Check(target("x:///y"), false), buildError(b)} {
			if want := fmt.Sprintf("x: the poll interval is %v, want more than 0", interval); fmt.Sprint(err) != want {
				t.Errorf("error %v, want %s", err, want)
			}
		}
	}
}

func buildError(b options.Builder) error {
	_, err := b.Build(target("x:///y"), &channel{}, resolver.BuildOptions{})
	return err
}
