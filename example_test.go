package understudy_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy"
)

func Example() {
	options := understudy.Recommended()
	options.RetryMethods = []string{"/helloworld.Greeter/SayHello"} // calls that are safe to repeat
	cc, err := understudy.NewClient("us-east.example.com:443,eu-west.example.com:443", options,
		grpc.WithTransportCredentials(credentials.NewTLS(nil)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cc.Close()
	fmt.Println(cc.Target())
	// Output: failover:///us-east.example.com:443,eu-west.example.com:443
}

// NewClient reports a mistake at once and suggests a correction.
func ExampleNewClient_mistakes() {
	creds := grpc.WithTransportCredentials(credentials.NewTLS(nil))
	_, scheme := understudy.NewClient("dns:///a.example.com:443", understudy.Recommended(), creds)
	_, server := understudy.NewClient("eds:///shop", understudy.Recommended(), creds)
	options := understudy.Recommended()
	options.WarmStandby = 200
	_, option := understudy.NewClient("a.example.com:443", options, creds)
	fmt.Printf("%v\n%v\n%v\n", scheme, option, server)
	// Output:
	// understudy: target "dns:///a.example.com:443" is for one of gRPC's own resolvers; write failover:///dns:///a.example.com:443
	// understudy: failover: WarmStandby: 200 given, want 0 to 128
	// understudy: eds: the target names no server, and neither does an xDS bootstrap (GRPC_XDS_BOOTSTRAP); want eds://xds.example.com:443/cluster
}

// This readiness probe reports ready while a priority can take calls. Here, the backend is down.
func Example_readiness() {
	var inUse atomic.Pointer[understudy.PriorityInUse]
	changed := make(chan bool, 1)
	options := understudy.Recommended()
	options.PriorityChanged = func(p understudy.PriorityInUse) {
		inUse.Store(&p)
		select {
		case changed <- true:
		default:
		}
	}
	cc, err := understudy.NewClient("127.0.0.1:1", options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, errors.New("connection refused") }))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cc.Close()
	cc.Connect()

	ready := func(w http.ResponseWriter, _ *http.Request) {
		if p := inUse.Load(); p == nil || p.Index < 0 {
			http.Error(w, "no backend", http.StatusServiceUnavailable)
		}
	}
	for inUse.Load() == nil || inUse.Load().Index >= 0 {
		<-changed
	}
	w := httptest.NewRecorder()
	ready(w, nil)
	fmt.Println(w.Code, w.Body)
	// Output: 503 no backend
}
