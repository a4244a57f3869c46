# docker build -t volta . && docker run --rm -p 8000:8000 volta serve /run/model.safetensors --host 0.0.0.0
FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends git make ca-certificates
COPY . /volta
WORKDIR /volta
RUN CI=true make package CMAKE_ARGS="-D VOLTA_CUDA=OFF -D VOLTA_BUILD_TESTS=OFF -D VOLTA_BUILD_EXAMPLES=OFF -D VOLTA_BUILD_BENCH=OFF"

FROM debian:12-slim
COPY --from=build /volta/build/packages/*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/*.deb && rm -rf /tmp/*.deb /var/lib/apt/lists/*
ENTRYPOINT ["volta"]
