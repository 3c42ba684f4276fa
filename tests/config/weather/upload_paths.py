from tailrace.web.bodies import UploadPaths

MAPS = UploadPaths("/api/forecasts/maps", files_bytes=5_000, limit="5 kB")
