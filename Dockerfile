# The service. `docker build -t vouchgate .`, then `docker run -v vouchgate:/data -p 8080:8080 vouchgate`; or compose.yaml.
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml hashes.txt README.md LICENSE ./
COPY ingest ingest
COPY storage storage
COPY review review
COPY vouchgate vouchgate
# Nothing is installed but what hashes.txt has the digests of: files for x86-64; on another machine make it anew.
RUN python -m venv /venv \
    && sed '/^# What tests/,$d' hashes.txt > service.txt \
    && /venv/bin/pip install --no-cache-dir --no-deps --require-hashes -r service.txt \
    && /venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.11-slim
# git reads the repositories that are cited. `safe.directory`: they belong to somebody else than who runs this.
RUN apt-get update \
    && apt-get install -y --no-install-recommends git \
    && rm -rf /var/lib/apt/lists/* \
    && git config --system --add safe.directory '*' \
    && useradd --system --create-home --home-dir /data vouchgate
COPY --from=build /venv /venv
USER vouchgate
WORKDIR /data
VOLUME /data
EXPOSE 8080
ENV PATH=/venv/bin:$PATH VOUCHGATE_HOST=0.0.0.0
HEALTHCHECK CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/readyz', timeout=3)"]
ENTRYPOINT ["vouchgate"]
CMD ["serve"]
