# devmap in a container. The first target plans without a GPU; the second one
# also runs plans on GPUs (docker run --gpus all).
#
#   docker build --target plan -t devmap .
#   docker run --rm -v "$PWD:/work" devmap plan qwen2.5-3b --gpus 4 -o plan.json
#
#   docker build --target cuda -t devmap:cuda .
#   docker run --rm --gpus all -v "$PWD:/work" devmap:cuda probe

FROM golang:1.26-trixie AS build
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /out/devmap ./cmd/devmap

FROM build AS build-cuda
RUN CGO_ENABLED=1 CGO_CFLAGS="-O2 -I$PWD/executor/cuda/internal/driver/include" go build -trimpath -ldflags "-s -w" -tags cuda -o /out/devmap-cuda ./cmd/devmap

# The driver's libraries come from the host: NVIDIA's container toolkit mounts them.
FROM debian:trixie-slim AS cuda
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY --from=build-cuda /out/devmap-cuda /usr/local/bin/devmap
WORKDIR /work
ENTRYPOINT ["/usr/local/bin/devmap"]

FROM scratch AS plan
COPY --from=build /out/devmap /usr/local/bin/devmap
WORKDIR /work
ENTRYPOINT ["/usr/local/bin/devmap"]
