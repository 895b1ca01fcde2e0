package eds

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// The environment variables of the xDS bootstrap (gRFC A27). If both are set, the file takes
// precedence.
const (
	bootstrapFileVar   = "GRPC_XDS_BOOTSTRAP"
	bootstrapConfigVar = "GRPC_XDS_BOOTSTRAP_CONFIG"
)

type bootstrap struct {
	Servers []bootstrapServer `json:"xds_servers"`
	Node    *json.RawMessage  `json:"node"`
	node    *corev3.Node      // parsed from Node, or nil
}

type bootstrapServer struct {
	URI   string           `json:"server_uri"`
	Creds []bootstrapCreds `json:"channel_creds"`
}

type bootstrapCreds struct {
	Type   string          `json:"type"`
	Config json.RawMessage `json:"config"`
}

// loadBootstrap returns an empty bootstrap if neither of the environment variables is set.
func loadBootstrap() (*bootstrap, error) {
	text, where := []byte(os.Getenv(bootstrapConfigVar)), "("+bootstrapConfigVar+")"
	if path := os.Getenv(bootstrapFileVar); path != "" {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("xDS bootstrap (%s): %w", bootstrapFileVar, err)
		}
		where = path + " (" + bootstrapFileVar + ")"
	} else if len(text) == 0 {
		return &bootstrap{}, nil
	}
	b, err := parseBootstrap(text)
	if err != nil {
		return nil, fmt.Errorf("xDS bootstrap %s: %w", where, err)
	}
	return b, nil
}

func parseBootstrap(text []byte) (*bootstrap, error) {
	var b bootstrap
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, fmt.Errorf("not the JSON of a bootstrap: %w", err)
	}
	if b.Node != nil {
		b.node = new(corev3.Node)
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(*b.Node, b.node); err != nil {
			return nil, fmt.Errorf("node: %w", err)
		}
	}
	return &b, nil
}

const dnsPrefix = "dns:///"

// find returns the server with the given URI, or nil. dns:///host:port is the same as host:port.
func (b *bootstrap) find(uri string) *bootstrapServer {
	for i, s := range b.Servers {
		if strings.TrimPrefix(s.URI, dnsPrefix) == strings.TrimPrefix(uri, dnsPrefix) {
			return &b.Servers[i]
		}
	}
	return nil
}

// credentials uses the first entry of channel_creds that we support.
func (s *bootstrapServer) credentials() (credentials.TransportCredentials, error) {
	var unknown []string
	for _, c := range s.Creds {
		switch c.Type {
		case "insecure":
			return insecure.NewCredentials(), nil
		case "tls":
			return tlsCredentials(c.Config)
		}
		unknown = append(unknown, c.Type)
	}
	return nil, fmt.Errorf(`xDS bootstrap: server %s has the channel_creds %s, want one of type "tls" or "insecure"`, printable.Line(s.URI, 100), printable.Line(fmt.Sprintf("%q", unknown), 200))
}

func tlsCredentials(config json.RawMessage) (credentials.TransportCredentials, error) {
	var files tlsFiles
	if len(config) > 0 {
		if err := json.Unmarshal(config, &files); err != nil {
			return nil, fmt.Errorf("xDS bootstrap: channel_creds of type tls: %w", err)
		}
	}
	if files == (tlsFiles{}) {
		return systemTLS, nil
	}
	return fileCredentials{systemTLS, files}, nil
}

func (b *bootstrap) nodeOrDefault() *corev3.Node {
	if b.node != nil {
		return withAgent(b.node)
	}
	id, _ := os.Hostname()
	return withAgent(&corev3.Node{Id: cmp.Or(id, "understudy")})
}

func withAgent(node *corev3.Node) *corev3.Node {
	node.UserAgentName = "understudy"
	node.ClientFeatures = append(node.ClientFeatures, "envoy.lb.does_not_support_overprovisioning")
	return node
}
