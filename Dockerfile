# The command in an image that holds nothing else but CA certificates and licences, and that runs as an
# unprivileged user:
#
#     docker build -t understudy .
#     docker run --rm understudy version
#
# The Go release is the newer one that the gate tests (.ci/floor), and .ci/image checks that it is.
ARG GO=1.27.4
FROM golang:${GO} AS build
WORKDIR /src
COPY . .
RUN bash .ci/rootfs /rootfs

FROM scratch
COPY --from=build /rootfs/ /
ENV PATH=/usr/local/bin
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/understudy"]
CMD ["--help"]
