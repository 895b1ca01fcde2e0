package eds

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/given"
	"github.com/understudy-lb/understudy/internal/testing/testcert"
)

func serveTLS(t *testing.T, a *testcert.Authority, clients *x509.CertPool) string {
	t.Helper()
	config := &tls.Config{Certificates: []tls.Certificate{a.Pair("server", "127.0.0.1").Load(t)}}
	if clients != nil {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, clients
	}
	return serve(t, serveOnce, grpc.Creds(credentials.NewTLS(config)))
}

func TestTLS(t *testing.T) {
	a := testcert.New(t)
	address := serveTLS(t, a, nil)
	c := build(t, "eds://"+address+"/c", given.Sources(WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: a.Pool()}))))
	wait(t, "state", c.states)

	c = build(t, "eds://"+address+"/c", given.Sources(WithTransportCredentials(credentials.NewTLS(nil))))
	if err := wait(t, "error", c.errors); !strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Errorf("with the roots of the system: %v", err)
	}
}

func TestMutualTLS(t *testing.T) {
	a := testcert.New(t)
	address := serveTLS(t, a, a.Pool())
	client := a.Pair("client", "client").Load(t)
	c := build(t, "eds://"+address+"/c", given.Sources(WithTransportCredentials(credentials.NewTLS(&tls.Config{
		RootCAs: a.Pool(), Certificates: []tls.Certificate{client},
	}))))
	wait(t, "state", c.states)
	c = build(t, "eds://"+address+"/c", given.Sources(WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: a.Pool()}))))
	wait(t, "error", c.errors)
}

func tlsBootstrap(address, ca string, pair testcert.Pair) string {
	return fmt.Sprintf(`{"xds_servers":[{"server_uri":"dns:///%s","channel_creds":[{"type":"tls","config":{
		"ca_certificate_file":%q,"certificate_file":%q,"private_key_file":%q,"refresh_interval":"60s"}}]}]}`,
		address, ca, pair.Certificate, pair.Key)
}

func TestBootstrapWithMutualTLS(t *testing.T) {
	a, other := testcert.New(t), testcert.New(t)
	address := serveTLS(t, a, a.Pool())
	clientPair := other.Pair("client", "client")
	t.Setenv(bootstrapConfigVar, tlsBootstrap(address, a.File(), clientPair))
	c := build(t, "eds://"+address+"/c")
	wait(t, "error", c.errors)
	renewed := a.Pair("client", "client")
	rename(t, renewed.Certificate, clientPair.Certificate)
	rename(t, renewed.Key, clientPair.Key)
	wait(t, "state", c.states)
}

func TestDefaultCredentials(t *testing.T) {
	boot, err := parseBootstrap([]byte(`{"xds_servers":[{"server_uri":"dns:///xds:1","channel_creds":[{"type":"insecure"}]},{"server_uri":"tls:1","channel_creds":[{"type":"tls"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var insecureOption options
	given.NewBuilder(Scheme, func(t *discovery.Target) ([]discovery.Mechanism, error) {
		insecureOption = discovery.OwnOptions(t, options{})
		return nil, nil
	}, given.Sources(WithInsecure())).OverrideAuthority(target(t, "eds:///c"))
	for _, test := range []struct {
		host    string
		options options
		want    credentials.TransportCredentials
	}{
		{"127.0.0.1:1", options{}, insecure.NewCredentials()},
		{"192.0.2.1:1", options{}, systemTLS},
		{"other:1", options{}, systemTLS},
		{"other:1", insecureOption, insecure.NewCredentials()},
		{"xds:1", options{}, insecure.NewCredentials()},
		{"tls:1", options{}, systemTLS},
		{"tls:1", insecureOption, insecure.NewCredentials()},
	} {
		got, err := test.options.credentialsFor("dns:///"+test.host, boot)
		if err != nil || got != test.want {
			t.Errorf("%s: credentials %v, %v, want %v", test.host, got, err, test.want)
		}
	}
}

// Channels may share a stream only if their credentials are equal. Credentials that cannot be
// compared with == count as different.
func TestIncomparableCredentials(t *testing.T) {
	type incomparable struct {
		credentials.TransportCredentials
		_ []string
	}
	creds := incomparable{TransportCredentials: insecure.NewCredentials()}
	wait(t, "state", build(t, "eds://"+serve(t, serveOnce)+"/c", given.Sources(WithTransportCredentials(creds))).states)
}
