// Package eds takes the endpoints of a channel from an xDS management server:
//
//	eds://server:port[,server:port…]/cluster[?failoverTimeout=5s&…]
//
// The server is asked for the ClusterLoadAssignment of that cluster, by Envoy's v3
// aggregated discovery service in its state-of-the-world variant. Its localities,
// priorities, weights and drops become a tree of policies, which
// docs/adr/0004-the-tree-never-changes-shape.md shows. The channel's authority is the name of the cluster, unless the target or an
// option gives another. The parameters are those of every target: docs/options.md.
//
// # The stream
//
// All channels of a process that use one server with the same credentials share one
// stream to it, and what the server sent is in memory once for all of them. The stream is
// opened with the first channel and closed with the last. It goes
// on asking for the clusters of closed channels until it ends, up to 100 of them and 16
// MiB; beyond that it is renewed. A response with a resource that breaks the rules
// (gRFC A27) is rejected with the reason; the good resources beside it are used. While
// the stream is down, or what comes is rejected, calls go on with the last good
// endpoints. Without any, calls fail with the reason: the server cannot be reached, the
// resource was rejected, or it did not come within 15 s. A lost stream is opened again
// with gRPC's backoff, 1 s at first and 120 s at most. A server that is gone without a word is
// noticed by a ping, every 5 minutes, that is not answered within 20 s. A server whose header
// understudy-ping is 30s, as that of understudy serve, is pinged every 30 s: the stream is
// renewed for that once, 1 to 5 minutes after it was opened. Other servers are asked on a second
// stream when endpoints fail and the first has brought nothing for 30 s: within 10 s, at most once in 5
// minutes. The second is used from its first response on, if it has one within 15 s. A response larger than 64 MiB is
// not read, unless WithMaxResponseSize says otherwise.
//
// # Clusters
//
// With cds=true in the target, or WithCDS, the server is asked for the Cluster of that name
// first. What it says is followed: an aggregate's clusters become priorities of the channel,
// in order (gRFC A37), a LOGICAL_DNS cluster becomes a name that is looked up, an EDS cluster
// says which endpoints to ask for. docs/xds.md has a table of the fields that are read. A
// cluster that cannot be used is a priority without endpoints; the others go on.
//
// # Several servers
//
// Servers are used in the order in which they are given, as in gRFC A71. The next one is
// asked when the last one asked cannot be reached and the cluster is missing. A server
// cannot be reached when a stream ended without an answer, or nothing came on it for 15
// s. One that answered before, and sends nothing for 15 s after it was asked for a cluster,
// cannot be reached for those who need that cluster: it may hang. A channel that has endpoints goes on with those while their server is down, unless
// WithFallbackOnReachabilityOnly, or fallbackOnReachabilityOnly=true in the target, asks
// for gRFC A95's rule. A server that cannot be reached is tried again and again, and used
// as soon as it has sent the cluster; those behind it are then no longer asked. A channel
// uses what one server says, never a mixture. Each channel decides for itself, and the
// log names both servers. Several IPv6 addresses do not fit into a target: put them into
// a bootstrap.
//
// # Credentials
//
// In this order: those given as an option, by WithTransportCredentials or
// WithInsecure; those of the xDS bootstrap, if it names the server; no encryption,
// if the server is on the loopback interface; TLS with the roots of the system.
//
// # The bootstrap
//
// The environment variable GRPC_XDS_BOOTSTRAP names a file, or else
// GRPC_XDS_BOOTSTRAP_CONFIG holds what would be in it, in JSON as in gRFC A27. Its
// node is sent to every server. Its servers, in order, are used by a target without a
// server, eds:///cluster, and their credentials by a target that names the same host
// and port. Of channel_creds, "insecure" and "tls" (with ca_certificate_file,
// certificate_file and private_key_file, which are read anew for each connection)
// are known, and the first known one is used. Other fields are ignored. A file that
// cannot be read, or holds a mistake, is read again with gRPC's backoff. Meanwhile the last good
// endpoints are used, or else calls fail with the error, which names the file.
package eds
