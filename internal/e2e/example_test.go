package e2e

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/understudy-lb/understudy"
)

type example struct {
	options  understudy.Options
	deadline time.Duration
}

// readExample reads the deadline from the source of examples/client, and checks that this client
// uses Recommended. It adds the test's method to RetryMethods.
func readExample(t *testing.T) example {
	t.Helper()
	source, err := os.ReadFile("../../examples/client/main.go")
	if err != nil {
		t.Fatal(err)
	}
	matchSource := func(pattern string) string {
		found := regexp.MustCompile(pattern).FindSubmatch(source)
		if found == nil {
			t.Fatalf("the client's source does not match %s", pattern)
		}
		return string(found[1])
	}
	matchSource(`understudy\.NewClient\(target, understudy\.(Recommended)\(\), grpc\.WithTransportCredentials\(credentials\.NewTLS\(nil\)\)\)`)
	n, err := strconv.Atoi(matchSource(`WithTimeout\(context\.Background\(\), (\d+)\*time\.Second\)`))
	if err != nil {
		t.Fatal(err)
	}
	e := example{understudy.Recommended(), time.Duration(n) * time.Second}
	e.options.RetryMethods = []string{whoMethod}
	return e
}

func (e example) dial(t *testing.T, creds credentials.TransportCredentials, priorities ...[]string) *grpc.ClientConn {
	t.Helper()
	path, old := endpointsFile(t, endpoints(priorities...)), time.Now().Add(-time.Minute)
	if err := os.Chtimes(path, old, old); err != nil { // the file must look old, because the source waits before it reads a new file
		t.Fatal(err)
	}
	cc, err := understudy.NewClient("file://"+path+"?authority=shop.example.com", e.options, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}
