package kubernetes_test

import (
	"fmt"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/kubernetes"
)

// A program outside of the cluster specifies the address of the API server and a transport with
// credentials.
func Example() {
	server := kubernetes.WithTransport("https://10.0.0.1:6443", &withToken{})
	cc, err := understudy.NewClient("kubernetes:///checkout.shop:grpc",
		understudy.Options{Sources: []discovery.SourceOption{server}},
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cc.Close() }()
	fmt.Println(cc.CanonicalTarget())
	// Output: kubernetes:///checkout.shop:grpc
}

type withToken struct {
	token string
	http.Transport
}

func (t *withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+t.token)
	return t.Transport.RoundTrip(r)
}
