package eds

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// The environment variables of the xDS bootstrap (gRFC A27). If both are set, bootstrapFileVar
// takes precedence.
const (
	bootstrapFileVar   = "GRPC_XDS_BOOTSTRAP"
	bootstrapConfigVar = "GRPC_XDS_BOOTSTRAP_CONFIG"
)

type bootstrap struct {
	Servers []bootstrapServer `json:"xds_servers"`
	Node    *bootstrapNode    `json:"node"`
}

type bootstrapServer struct {
	URI   string           `json:"server_uri"`
	Creds []bootstrapCreds `json:"channel_creds"`
}

type bootstrapNode struct{ *corev3.Node }

func (n *bootstrapNode) UnmarshalJSON(text []byte) error {
	n.Node = new(corev3.Node)
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, n.Node); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	return nil
}

type bootstrapCreds struct {
	Type   string          `json:"type"`
	Config json.RawMessage `json:"config"`
}

// loadBootstrap reads the bootstrap that the environment variables specify. If no variable is set,
// it returns an empty bootstrap.
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
	for i, s := range b.Servers {
		if s.URI == "" {
			return nil, fmt.Errorf("xds_servers[%d] has no server_uri", i)
		}
	}
	return &b, nil
}

const dnsPrefix = "dns:///"

// find returns the server with the given URI, or nil. The scheme "dns" may be omitted in both URIs.
func (b *bootstrap) find(uri string) *bootstrapServer {
	for i, s := range b.Servers {
		if strings.TrimPrefix(s.URI, dnsPrefix) == strings.TrimPrefix(uri, dnsPrefix) {
			return &b.Servers[i]
		}
	}
	return nil
}

// credentials returns the first supported entry of the server's channel_creds.
func (s *bootstrapServer) credentials() (channelCredentials, error) {
	var unknown []string
	for _, c := range s.Creds {
		switch c.Type {
		case "insecure":
			return channelCredentials{insecure.NewCredentials(), insecureIdentity}, nil
		case "tls":
			return tlsCredentials(c.Config)
		}
		unknown = append(unknown, c.Type)
	}
	return channelCredentials{}, fmt.Errorf(`xDS bootstrap: server %s has the channel_creds %s, want one of type "tls" or "insecure"`, printable.Line(s.URI, 100), printable.Line(fmt.Sprintf("%q", unknown), 200))
}

func tlsCredentials(config json.RawMessage) (channelCredentials, error) {
	var files tlsFiles
	var err error
	if len(config) > 0 {
		err = json.Unmarshal(config, &files)
	}
	if err == nil && (files.Certificate == "") != (files.PrivateKey == "") {
		err = errors.New("certificate_file and private_key_file go together: only one is given")
	}
	if err != nil {
		return channelCredentials{}, fmt.Errorf("xDS bootstrap: channel_creds of type tls: %w", err)
	}
	if files == (tlsFiles{}) {
		return channelCredentials{credentials.NewTLS(nil), systemIdentity}, nil
	}
	return channelCredentials{&fileCredentials{credentials.NewTLS(nil), files}, files}, nil
}

func (b *bootstrap) nodeOrDefault() *corev3.Node {
	if b.Node != nil {
		return withAgent(b.Node.Node)
	}
	id, err := os.Hostname()
	if err != nil {
		id = "understudy"
	}
	return withAgent(&corev3.Node{Id: id})
}

func withAgent(node *corev3.Node) *corev3.Node {
	node.UserAgentName = "understudy"
	node.ClientFeatures = append(node.ClientFeatures, "envoy.lb.does_not_support_overprovisioning")
	return node
}
