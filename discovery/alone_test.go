package discovery_test

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/config/options"
)

// A program that imports a source must also import package understudy. If it does not, Build
// returns an error that names the import.
func TestBuildWithoutPackageUnderstudy(t *testing.T) {
	discovery.Register("alone", func(*discovery.Target) ([]discovery.Mechanism, error) {
		return []discovery.Mechanism{{Source: &fakeSource{}}}, nil
	})
	makeBuilder := options.Make
	options.Make = nil
	defer func() { options.Make = makeBuilder }()
	_, err := resolver.Get("alone").Build(target("alone:///x"), &channel{}, resolver.BuildOptions{})
	const want = "alone: no resolver is available for this source; import github.com/understudy-lb/understudy"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	options.Make = makeBuilder
	cc, err := grpc.NewClient("alone:///x", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	cc.Connect()
	if err := cc.Close(); err != nil {
		t.Error(err)
	}
}
