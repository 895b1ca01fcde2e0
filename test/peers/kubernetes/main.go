// Command kubernetes reproduces failures that users of other Kubernetes resolvers have reported.
// Understudy and kuberesolver run side by side, watching the same API server on loopback and
// getting the same events. After each event, it prints which pods handle the calls of each channel.
//
// It needs Linux, where all addresses in 127.0.0.0/8 are loopback addresses.
package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"text/tabwriter"
	"time"

	"github.com/sercand/kuberesolver/v6"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/discovery/kubernetes"
)

// settleTime is how long we wait between an event and the calls that we measure. A step can add to
// that.
const settleTime = 2 * time.Second

const kuberesolverPath = "github.com/sercand/kuberesolver/v6"

func main() {
	if err := compare(); err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes:", err)
		os.Exit(1)
	}
}

func compare() error {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprintf(table, "| what happens\t| pods that the Service has ready\t| Understudy calls\t| kuberesolver %s calls\t|\n| ---\t| ---\t| ---\t| ---\t|\n", version())
	for _, s := range scenarios {
		if err := runScenario(s, table); err != nil {
			return fmt.Errorf("%s: %w", s.steps[0].description, err)
		}
	}
	return table.Flush()
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == kuberesolverPath {
				return module.Version
			}
		}
	}
	return "of an unknown version"
}

// runScenario uses new channels, ours and kuberesolver's. Each step gets a row of the table.
func runScenario(s scenario, table *tabwriter.Writer) error {
	p, err := startPods()
	if err != nil {
		return err
	}
	defer p.stop()
	server := startServer()
	defer server.stop()
	c := &cluster{apiServer: server, port: p.port}
	s.before(c)
	ours, theirs, err := channels(server.URL)
	if err != nil {
		return err
	}
	defer ours.Close()   //nolint:errcheck // no data can be lost
	defer theirs.Close() //nolint:errcheck // no data can be lost
	ours.Connect()
	theirs.Connect()
	if err := server.awaitWatches(2); err != nil {
		return err
	}
	traffic(settleTime, ours, theirs)
	for _, step := range s.steps {
		if step.change != nil {
			step.change(c)
			traffic(settleTime, ours, theirs)
		}
		traffic(step.extraWait, ours, theirs)
		fmt.Fprintf(table, "| %s\t| %s\t| %s\t| %s\t|\n", step.description, step.ready, answeringPods(ours), answeringPods(theirs))
	}
	return nil
}

func channels(url string) (ours, theirs *grpc.ClientConn, err error) {
	ours, err = understudy.NewClient("kubernetes:///web.shop",
		understudy.Options{Sources: []discovery.SourceOption{kubernetes.WithTransport(url, &http.Transport{})}},
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, nil, err
	}
	theirs, err = grpc.NewClient("kuberesolver:///web.shop",
		grpc.WithResolvers(kuberesolver.NewBuilder(kuberesolver.NewInsecureK8sClient(url), "kuberesolver")),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	return ours, theirs, nil
}
