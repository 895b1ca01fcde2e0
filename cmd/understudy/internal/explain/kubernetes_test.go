package explain

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/cmd/understudy/internal/kubeconfig"
)

func TestServiceWithKubeconfig(t *testing.T) {
	requests, done := make(chan *http.Request, 10), make(chan struct{})
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case requests <- r:
		default:
		}
		fmt.Fprintln(w, `{"type":"ADDED","object":{"metadata":{"name":"web-1","namespace":"shop","resourceVersion":"1","labels":{"kubernetes.io/service-name":"web"}},
			"addressType":"IPv4","ports":[{"name":"grpc","port":443}],"endpoints":[{"addresses":["10.0.0.1"],"conditions":{"ready":true},"zone":"a"}]}}`)
		fmt.Fprintln(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
		w.(http.Flusher).Flush()
		<-done
	}))
	defer s.Close()
	defer close(done)
	path := filepath.Join(t.TempDir(), "config")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	text := fmt.Sprintf(`{"current-context":"x","contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority-data":%q}}],"users":[{"name":"u","user":{"token":"abc"}}]}`, s.URL, base64.StdEncoding.EncodeToString(authority))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := Run(t.Context(), Options{File: "kubernetes:///web.shop:grpc", Kubeconfig: kubeconfig.Options{Path: path}, Out: &out})
	if err != nil || !strings.Contains(out.String(), "10.0.0.1:443") || !strings.Contains(out.String(), "100.00 %") {
		t.Errorf("%v\n%s\nwant all calls at 10.0.0.1:443", err, &out)
	}
	if r := <-requests; r.Header.Get("Authorization") != "Bearer abc" || !strings.Contains(r.URL.Path, "/namespaces/shop/") {
		t.Errorf("the server is asked for %s with %q", r.URL, r.Header["Authorization"])
	}
}
