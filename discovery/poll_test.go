package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

func TestPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polls := 0
		var cancelErr error
		s := discovery.Poll(10*time.Second, func(ctx context.Context) (discovery.Answer, error) {
			polls++
			switch polls {
			case 1:
				return discovery.Answer{}, errors.New("down")
			case 4:
				<-ctx.Done()
				cancelErr = ctx.Err()
				return discovery.Answer{}, ctx.Err()
			}
			return flat.Answer(flat.Endpoint{Address: fmt.Sprintf("10.0.0.%d:1", polls)}), nil
		})
		cc, start := &channel{}, time.Now()
		r := build(t, newSourceBuilder(s), cc)
		synctest.Wait()
		if got, want := cc.take(), "error x: down"; got != want {
			t.Errorf("at once: channel saw %q, want %q", got, want)
		}
		// The first backoff is 1 s plus or minus 20%, and the interval 10 s plus or minus 10%. The
		// second poll is therefore due after 0.8 to 1.2 s, and the third after 9.8 to 12.2 s.
		for _, step := range []struct {
			seconds float64
			want    string
		}{{0.7, ""}, {1.3, `state 10.0.0.2:1["child0" "/"]`}, {9.7, ""}, {12.3, `state 10.0.0.3:1["child0" "/"]`}} {
			<-time.After(time.Until(start.Add(time.Duration(step.seconds * float64(time.Second)))))
			if got := cc.take(); got != step.want {
				t.Errorf("after %v s: channel saw %q, want %q", step.seconds, got, step.want)
			}
		}
		<-time.After(time.Minute)
		r.Close()
		synctest.Wait()
		if polls != 4 || cancelErr == nil || cc.take() != "" {
			t.Errorf("polled %d times, ended with %v; want no overlapping polls, and a cancelled context", polls, cancelErr)
		}
	})
}

// Without an interval, a source must be polled only after a failed connection.
func TestPollWithoutInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polls := 0
		started, err := discovery.Poll(0, func(context.Context) (discovery.Answer, error) {
			polls++
			return discovery.Answer{}, nil
		}).Start(new(discovery.Receiver))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		before := polls
		started.ResolveNow()
		synctest.Wait()
		if before != 1 || polls != 2 {
			t.Errorf("polled %d times, and %d times after a failed connection, want once and twice", before, polls)
		}
		started.Close()
	})
}
