package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery/failover"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/testlog"
)

// secretResolver is a resolver of the application. Its errors contain the target and the secrets in
// it.
type secretResolver struct {
	mu    sync.Mutex
	conns []resolver.ClientConn
}

func (*secretResolver) Scheme() string { return "vault" }

func (v *secretResolver) Build(target resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.conns = append(v.conns, cc)
	cc.ReportError(fmt.Errorf("cannot ask %s (%v)", target.URL.String(), target.URL.Query()))
	return v, nil
}

func (*secretResolver) ResolveNow(resolver.ResolveNowOptions) {}
func (*secretResolver) Close()                                {}

func (v *secretResolver) answer() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, cc := range v.conns {
		_ = cc.UpdateState(resolver.State{Addresses: []resolver.Address{{Addr: fmt.Sprintf("10.0.0.%d:1", i)}}})
	}
}

var ownLog = testlog.Capture()

// Secrets in a failover target must appear neither in our errors and log lines nor on the page.
// (gRPC itself logs the target at level INFO.)
func TestSecretsInTargetsAreHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, journal := &secretResolver{}, &bytes.Buffer{}
		const target = "failover:///vault:%2F%2Fuser:hunter22@h%2Fshop%3Ftoken=abcdef12,vault:%2F%2Fother333@h%2Fshop,b.test%3Ftoken=abcdef12"
		dial := func(context.Context, string) (net.Conn, error) { return nil, errors.New("connection refused") }
		builder := given.Builder(failover.Scheme, given.Sources(failover.WithResolvers(v)), given.Set("Logger", slog.New(slog.NewTextHandler(journal, nil))))
		texts := map[string]string{}
		if conn, err := grpc.NewClient(target, grpc.WithResolvers(builder), grpc.WithTransportCredentials(insecure.NewCredentials())); err == nil {
			texts["the error of a target with a mistake"] = fmt.Sprint(conn.Invoke(t.Context(), "/a/b", nil, nil))
			_ = conn.Close()
		}
		validTarget, _, _ := strings.Cut(target, ",b.test")
		conn, err := grpc.NewClient(validTarget, grpc.WithResolvers(builder), grpc.WithContextDialer(dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		texts["the error of a call"] = fmt.Sprint(conn.Invoke(t.Context(), "/a/b", nil, nil))
		texts["the page"], texts["JSON"] = get(t, ""), get(t, "?format=json")
		v.answer()
		time.Sleep(time.Minute)
		texts["the error of a call later"] = fmt.Sprint(conn.Invoke(t.Context(), "/a/b", nil, nil))
		texts["the page later"], texts["JSON later"] = get(t, ""), get(t, "?format=json")
		texts["the user's log"] = journal.String()
		for line := range strings.Lines(ownLog.Take()) {
			if strings.Contains(line, "[understudy]") {
				texts["gRPC's log"] += line
			}
		}
		for where, text := range texts {
			for _, secret := range []string{"hunter22", "abcdef12", "other333"} {
				if i := strings.Index(text, secret); i >= 0 {
					t.Errorf("%s contains a secret: …%.200s", where, text[max(0, i-100):])
				}
			}
			if !strings.Contains(text, "xxxxx") {
				t.Errorf("%s does not contain the redacted target: %.300s", where, text)
			}
		}
	})
}
