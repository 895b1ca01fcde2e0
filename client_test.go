package understudy_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/understudy-lb/understudy"
)

func newClient(target string, options understudy.Options, dialOptions ...grpc.DialOption) (*grpc.ClientConn, error) {
	return understudy.NewClient(target, options, append(dialOptions, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
}

// An error quotes the beginning of a long target, not all of it.
func TestNewClientShortensLongTargets(t *testing.T) {
	long := strings.Repeat("\"", 3000)
	for _, target := range []string{"a:1" + long + "\x00", long, "xds:///" + long, "k8s:///" + long, "dns:///" + long, strings.Repeat("x", 3000) + ":///a"} {
		cc, err := newClient(target, understudy.Options{})
		if err == nil {
			cc.Close()
		}
		if err == nil || len(err.Error()) > 800 {
			t.Errorf("%.20s…: %v, want a shorter error", target, err)
		}
	}
}

func TestNewClientErrors(t *testing.T) {
	t.Setenv("GRPC_XDS_BOOTSTRAP", "")
	t.Setenv("GRPC_XDS_BOOTSTRAP_CONFIG", "")
	type options = understudy.Options
	for _, test := range []struct {
		target  string
		options options
		wantErr string
	}{
		{"failver:///a", options{}, `target "failver:///a" has the unknown scheme "failver"; want a list such as us-east.example.com:443,eu-west.example.com:443, or one of the schemes eds, failover, file, srv`},
		{"us-east.example.com", options{}, `target "us-east.example.com" has no port after "us-east.example.com"; write us-east.example.com:443`},
		{"dns:///a:1", options{}, "write failover:///dns:///a:1"},
		{"unix:/run/a", options{}, "write failover:///unix:/run/a"},
		{"passthrough:///a:1", options{}, "write failover:///passthrough:///a:1"},
		{"xds:///a", options{}, "for grpc-go's xDS stack, which configures load balancing itself; call grpc.NewClient, or write eds://xds.example.com:443/cluster"},
		{"k8s:///a", options{}, `write import _ "github.com/understudy-lb/understudy/discovery/kubernetes"`},
		{"kubernetes:///a", options{}, `write import _ "github.com/understudy-lb/understudy/discovery/kubernetes"`},
		{"failover:///a:1?failovrTimeout=1s", options{}, `unknown parameter "failovrTimeout" (in a name, ? is written %3F), want one of authority, `},
		{"a:1,b:2?failoverTimeout=1", options{}, `failoverTimeout: "1" given, want a duration such as 10s`},
		{"a:1,b:2", options{FailoverTimeout: -1}, "FailoverTimeout: -1ns given, want a duration such as 10s, of more than 0s"},
		{"a:1,b:2", options{Ramp: 2 * time.Hour}, "Ramp: 2h0m0s given, want a duration such as 10s, from 1s to 1h0m0s"},
		{"a:1,b:2", options{EndpointPolicy: "pick_first", OutlierDetection: understudy.On}, "OutlierDetection: given together with EndpointPolicy pick_first, want one of them"},
		{"a:1,b:2", options{OutlierDetection: 3}, "OutlierDetection: 3 given, want AsClusterSays, On or Off"},
		{"a:1,b:2", options{Refresh: time.Millisecond}, "Refresh: 1ms given, want a duration such as 10s, of 1s and more"},
		{"a:1,b:2", options{Keepalive: keepalive.ClientParameters{Time: time.Second}}, "Keepalive.Time: 1s given, want 10s or more"},
		{"a:1,b:2", options{MaxConnectBackoff: time.Millisecond}, "MaxConnectBackoff: 1ms given, want a duration such as 10s, of 1s and more"},
		{"a:1,b:2", options{RetryMethods: []string{"Check"}}, `RetryMethods[0]: "Check" given, want /package.Service/Method`},
		{"a:1,b:2", options{HealthService: "a"}, `HealthService: "a" given without HealthCheck`},
		{"a:1,b:2", options{ServiceConfig: "{"}, "ServiceConfig: "},
		{"a:1,b:2", options{ServiceConfig: `{"methodConfig": [{"name": [{}], "timeout": "soon"}]}`}, "ServiceConfig: "},
		{"a:1,b:2", options{ServiceConfig: `{"HealthCheckConfig": {}}`, HealthCheck: true}, "HealthCheckConfig given together with the field HealthCheck, want only one of them"},
		{"a:1,b:2", options{RetryThrottling: understudy.RetryThrottling{MaxTokens: 1001}}, "RetryThrottling: {MaxTokens:1001 TokenRatio:0} given"},
		{"eds:///a", options{}, "names no server"},
	} {
		cc, err := newClient(test.target, test.options)
		if err == nil {
			cc.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), "understudy: ") || !strings.Contains(err.Error(), test.wantErr) {
			t.Errorf("%s with %+v: %v\nwant %s", test.target, test.options, err, test.wantErr)
		}
	}
}

func TestNewClientTargets(t *testing.T) {
	for target, want := range map[string]string{
		"a.example.com:1,b.example.com:2":   "failover:///a.example.com:1,b.example.com:2",
		"127.0.0.1:1?failoverTimeout=1s":    "failover:///127.0.0.1:1?failoverTimeout=1s",
		"[::1]:1,localhost:2":               "failover:///[::1]:1,localhost:2",
		"file:///none":                      "file:///none",
		"eds://127.0.0.1:1/c?warmStandby=1": "eds://127.0.0.1:1/c?warmStandby=1",
		"srv:///a.example.com":              "srv:///a.example.com",
	} {
		for _, options := range []understudy.Options{{}, understudy.Recommended()} {
			cc, err := newClient(target, options)
			if err != nil {
				t.Errorf("%s: %v", target, err)
				continue
			}
			if cc.Target() != want {
				t.Errorf("%s became %s, want %s", target, cc.Target(), want)
			}
			cc.Close()
		}
	}
}
