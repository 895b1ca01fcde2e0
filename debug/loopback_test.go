package debug

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestLoopbackOnly(t *testing.T) {
	server := httptest.NewServer(LoopbackOnly(Handler()))
	defer server.Close()
	for host, want := range map[string]int{
		"localhost": 200, "LocalHost:6060": 200, "127.0.0.1": 200, "127.9.9.9:80": 200, "[::1]:80": 200, "[::1]": 200,
		"evil.example.com": 403, "evil.example.com:6060": 403, "127.0.0.1.evil.example.com": 403, "localhost.evil.example.com": 403,
		"10.0.0.1:6060": 403, "[::1].evil.example.com": 403, "localhost.": 403, "0.0.0.0": 403,
	} {
		request, err := http.NewRequest(http.MethodGet, server.URL+"/?format=json", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("host %s: status %s, want %d", host, response.Status, want)
		}
	}
}
