//go:build torture

package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/serve"
	"github.com/understudy-lb/understudy/internal/testing/adstest"
	"github.com/understudy-lb/understudy/internal/testing/dnstest"
	"github.com/understudy-lb/understudy/internal/testing/kubetest"
)

type content [][]string

func (c content) allHosts() (hosts []string) {
	for _, priorityHosts := range c {
		hosts = append(hosts, priorityHosts...)
	}
	return hosts
}

const clusterName = "shop"

type sourceConfig struct {
	Address string
	Port    int
	Content content
	Version int // first version of the API server
	Args    []string
}

// serve calls publish with the configured content, and with each content that a command sets.
func (s sourceConfig) serve(publish func(content)) error {
	publish(s.Content)
	return readCommands(func(command string) error {
		text, ok := strings.CutPrefix(command, "set ")
		if !ok {
			return fmt.Errorf("unknown command %q", command)
		}
		var c content
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			return err
		}
		publish(c)
		return nil
	})
}

func runDNS() error {
	var config sourceConfig
	if err := readConfig(&config); err != nil {
		return err
	}
	server, err := dnstest.StartAt(config.Address)
	if err != nil {
		return err
	}
	return config.serve(func(c content) {
		var records []string
		for i, hosts := range c {
			server.Set(fmt.Sprintf("t%d.test", i), "A", hosts...)
			for _, h := range hosts {
				name := "h" + strings.ReplaceAll(h, ".", "-") + ".test"
				server.Set(name, "A", h)
				records = append(records, fmt.Sprintf("%d 1 %d %s.", i, config.Port, name))
			}
		}
		server.Set("all.test", "A", c.allHosts()...)
		server.Set("_grpc._tcp."+clusterName+".test", "SRV", records...)
	})
}

func runServe() error {
	var config sourceConfig
	if err := readConfig(&config); err != nil {
		return err
	}
	command := serve.Command()
	command.SetArgs(append([]string{"--listen", config.Address}, config.Args...))
	exited := make(chan error, 1)
	go func() { exited <- command.ExecuteContext(context.Background()) }()
	for {
		if conn, err := net.Dial("tcp", config.Address); err == nil {
			conn.Close()
			break
		}
		select {
		case err := <-exited:
			return errors.Join(errors.New("serve has ended"), err)
		case <-time.NewTimer(10 * time.Millisecond).C:
		}
	}
	go func() { panic(<-exited) }()
	return readCommands(func(command string) error { return fmt.Errorf("unknown command %q", command) })
}

// runControlPlane runs a scripted management server. Its versions begin with 1 after each start.
// With empty content, it sends a cluster that clients must reject.
func runControlPlane() error {
	var config sourceConfig
	if err := readConfig(&config); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", config.Address)
	if err != nil {
		return err
	}
	catalogue := adstest.NewCatalogue()
	adstest.Serve(listener, catalogue.Serve)
	return config.serve(func(c content) {
		cluster := &endpointv3.ClusterLoadAssignment{ClusterName: clusterName}
		for i, hosts := range c {
			locality := adstest.Cluster("", withPort(config.Port, hosts...)...).GetEndpoints()[0]
			locality.Priority = uint32(i)
			cluster.Endpoints = append(cluster.Endpoints, locality)
		}
		if len(c) == 0 {
			cluster = adstest.Cluster(clusterName, withPort(config.Port, "127.1.9.1")...)
			cluster.GetEndpoints()[0].GetLbEndpoints()[0].LoadBalancingWeight = wrapperspb.UInt32(0)
		}
		catalogue.Set(cluster)
	})
}

func runAPIServer() error {
	var config sourceConfig
	if err := readConfig(&config); err != nil {
		return err
	}
	server := kubetest.New(config.Version)
	listener, err := net.Listen("tcp", config.Address)
	if err != nil {
		return err
	}
	publish := func(c content) {
		for i, hosts := range c {
			var endpoints []string
			for _, h := range hosts {
				endpoints = append(endpoints, fmt.Sprintf(`{"addresses":[%q],"conditions":{"ready":true}}`, h))
			}
			server.Set(fmt.Sprintf("t%d", i), fmt.Sprintf("t%d-1", i), config.Port, endpoints...)
		}
	}
	publish(config.Content)
	config.Content = nil // empty content below then means no change
	go http.Serve(listener, server)
	return config.serve(publish)
}

func (c content) yaml(port int) string {
	text := "cluster_name: " + clusterName + "\nendpoints:\n"
	for i, hosts := range c {
		text += fmt.Sprintf("- locality: {region: r%d}\n  priority: %d\n  load_balancing_weight: 1\n  lb_endpoints:\n", i, i)
		for _, h := range hosts {
			text += fmt.Sprintf("  - endpoint: {address: {socket_address: {address: %s, port_value: %d}}}\n", h, port)
		}
	}
	return text
}
